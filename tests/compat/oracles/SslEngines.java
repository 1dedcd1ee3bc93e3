// Asks Kafka's own engine factory whether it takes a set of ssl.* properties. One JSON object of properties a line in,
// {"ok": true} or {"ok": false, "why": "..."} a line out.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

public class SslEngines {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        ConfigDef definition = new ConfigDef();
        definition.withClientSslSupport();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode given = mapper.readTree(line);
            Map<String, String> properties = new HashMap<>();
            given.fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
            ObjectNode answer = mapper.createObjectNode();
            try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
                factory.configure(new AbstractConfig(definition, properties, false).values());
                answer.put("ok", true);
            } catch (Exception refusal) {
                answer.put("ok", false);
                answer.put("why", String.valueOf(refusal.getMessage()));
            }
            out.println(mapper.writeValueAsString(answer));
        }
        out.flush();
    }
}
