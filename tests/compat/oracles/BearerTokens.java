import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;

/** What Kafka's broker says of a bearer token. The first line says where the keys are and what is expected. */
public class BearerTokens {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BrokerJwtValidator validator = validator(json.readTree(in.readLine()));
        out.println("{\"ready\":true}");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode told = json.createObjectNode();
            try {
                OAuthBearerToken token = validator.validate(json.readTree(line).get("token").textValue());
                told.put("name", token.principalName());
                told.put("expires", token.lifetimeMs());
            } catch (Exception refused) {
                String why = String.valueOf(refused.getMessage());
                told.put("error", why.substring(0, Math.min(300, why.length())));
            }
            out.println(json.writeValueAsString(told));
        }
        out.flush();
    }

    private static BrokerJwtValidator validator(JsonNode asked) throws Exception {
        String url = asked.get("jwks").textValue();
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", asked.get("file").textValue());
        Map<String, Object> configs = new HashMap<>();
        configs.put("sasl.oauthbearer.jwks.endpoint.url", url);
        configs.put("sasl.oauthbearer.expected.audience", List.of("kafka", "other"));
        configs.put("sasl.oauthbearer.expected.issuer", "https://idp");
        configs.put("sasl.oauthbearer.clock.skew.seconds", 30);
        configs.put("sasl.oauthbearer.scope.claim.name", "scope");
        configs.put("sasl.oauthbearer.sub.claim.name", "sub");
        BrokerJwtValidator validator = new BrokerJwtValidator();
        validator.configure(configs, "OAUTHBEARER", List.of(new AppConfigurationEntry(
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of())));
        return validator;
    }
}
