import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** The name in a certificate as Java prints it, and what Kafka's mapping rules make of a name. */
public class CertificateNames {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            ObjectNode told = json.createObjectNode();
            try {
                told.put("name", asked.has("der") ? printed(asked) : mapped(asked));
            } catch (Exception | StackOverflowError refused) {
                told.put("error", refused.getClass().getSimpleName() + ": " + refused.getMessage());
            }
            out.println(json.writeValueAsString(told));
        }
        out.flush();
    }

    private static String printed(JsonNode asked) throws Exception {
        return new X500Principal(asked.get("der").binaryValue()).getName();
    }

    private static String mapped(JsonNode asked) throws Exception {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(asked.get("rules").textValue());
        return mapper.getName(asked.get("name").textValue());
    }
}
