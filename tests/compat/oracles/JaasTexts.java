import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** What Kafka makes of a text of sasl.jaas.config. */
public class JaasTexts {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            out.println(json.writeValueAsString(answer(json, asked.get("text").textValue())));
        }
        out.flush();
    }

    private static ObjectNode answer(ObjectMapper json, String text) {
        ObjectNode told = json.createObjectNode();
        try {
            JaasContext context = JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(text)));
            AppConfigurationEntry entry = context.configurationEntries().get(0);
            told.put("module", entry.getLoginModuleName());
            told.put("flag", entry.getControlFlag().toString());
            ObjectNode options = told.putObject("options");
            for (Map.Entry<String, ?> option : entry.getOptions().entrySet()) {
                if (option.getKey() != null) {
                    options.put(option.getKey(), (String) option.getValue());
                }
            }
        } catch (RuntimeException refused) {
            told.put("error", String.valueOf(refused.getMessage()));
        }
        return told;
    }
}
