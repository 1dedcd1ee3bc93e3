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
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.ScramExtensionsCallback;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslClient;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCredentialCallback;

/** Kafka's side of logins: PLAIN, SCRAM of both sides, the first message of OAUTHBEARER, references in configs. */
public class Logins {
    private final ObjectMapper json = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
    private final Map<String, ScramCredential> users = new HashMap<>();
    private final Map<String, ScramCredential> tokens = new HashMap<>();
    private final Map<Integer, ScramSaslServer> servers = new HashMap<>();
    private final Map<Integer, ScramSaslClient> clients = new HashMap<>();

    public static void main(String[] args) throws Exception {
        new Logins().run();
    }

    private void run() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode told = json.createObjectNode();
            try {
                answer(json.readTree(line), told);
            } catch (Exception refused) {
                told.removeAll();
                told.put("error", String.valueOf(refused.getMessage()));
            }
            out.println(json.writeValueAsString(told));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private void answer(JsonNode asked, ObjectNode told) throws Exception {
        byte[] token = asked.has("token") ? asked.get("token").binaryValue() : null;
        int id = asked.path("id").intValue();
        switch (asked.get("op").textValue()) {
            case "plain" -> plain(asked, token, told);
            case "oauth" -> oauth(token, told);
            case "references" -> references(asked, told);
            case "credential" -> credential(asked, told);
            case "server-first" -> {
                ScramSaslServer server = new ScramSaslServer(mechanism(asked), Map.of(), this::credentials);
                servers.put(id, server);
                told.put("token", server.evaluateResponse(token));
            }
            case "server-final" -> {
                ScramSaslServer server = servers.remove(id);
                told.put("token", server.evaluateResponse(token));
                told.put("name", server.getAuthorizationID());
            }
            case "client-first" -> {
                ScramSaslClient client = new ScramSaslClient(mechanism(asked), passwords(asked));
                clients.put(id, client);
                told.put("token", client.evaluateChallenge(new byte[0]));
            }
            case "client-challenge" -> told.put("token", clients.get(id).evaluateChallenge(token));
            case "client-final" -> {
                ScramSaslClient client = clients.remove(id);
                client.evaluateChallenge(token);
                told.put("complete", client.isComplete());
            }
            default -> throw new IllegalStateException("nobody asks this");
        }
    }

    private static ScramMechanism mechanism(JsonNode asked) {
        return ScramMechanism.forMechanismName(asked.get("mechanism").textValue());
    }

    private void plain(JsonNode asked, byte[] token, ObjectNode told) throws Exception {
        Map<String, Object> options = new HashMap<>();
        asked.get("users").fields().forEachRemaining(user -> options.put("user_" + user.getKey(), user.getValue().textValue()));
        PlainServerCallbackHandler handler = new PlainServerCallbackHandler();
        handler.configure(Map.of(), "PLAIN", List.of(new AppConfigurationEntry(
            "org.apache.kafka.common.security.plain.PlainLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options)));
        SaslServer server = new PlainSaslServer(handler);
        server.evaluateResponse(token);
        told.put("name", server.getAuthorizationID());
    }

    private static void oauth(byte[] token, ObjectNode told) throws Exception {
        OAuthBearerClientInitialResponse first = new OAuthBearerClientInitialResponse(token);
        told.put("token", first.tokenValue());
        told.put("authzid", first.authorizationId());
        ObjectNode extensions = told.putObject("extensions");
        first.extensions().map().forEach(extensions::put);
    }

    private void credential(JsonNode asked, ObjectNode told) throws Exception {
        ScramCredential credential = new ScramCredential(asked.get("salt").binaryValue(),
            asked.get("stored").binaryValue(), asked.get("server").binaryValue(), asked.get("iterations").intValue());
        (asked.get("by_token").booleanValue() ? tokens : users).put(asked.get("name").textValue(), credential);
        told.put("known", true);
    }

    private void credentials(Callback[] callbacks) {
        String name = null;
        for (Callback callback : callbacks) {
            if (callback instanceof NameCallback) {
                name = ((NameCallback) callback).getDefaultName();
            } else if (callback instanceof DelegationTokenCredentialCallback) {
                DelegationTokenCredentialCallback wanted = (DelegationTokenCredentialCallback) callback;
                wanted.scramCredential(tokens.get(name));
                wanted.tokenOwner(tokens.containsKey(name) ? "owner" : null);
                wanted.tokenExpiryTimestamp(Long.MAX_VALUE);
            } else {
                ((ScramCredentialCallback) callback).scramCredential(users.get(name));
            }
        }
    }

    private static CallbackHandler passwords(JsonNode asked) {
        return callbacks -> {
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback) {
                    ((NameCallback) callback).setName(asked.get("name").textValue());
                } else if (callback instanceof PasswordCallback) {
                    ((PasswordCallback) callback).setPassword(asked.get("password").textValue().toCharArray());
                } else if (callback instanceof ScramExtensionsCallback && asked.get("by_token").booleanValue()) {
                    ((ScramExtensionsCallback) callback).extensions(Map.of("tokenauth", "true"));
                }
            }
        };
    }

    private static void references(JsonNode asked, ObjectNode told) {
        ConfigProvider provider = new ConfigProvider() {
            @Override public void configure(Map<String, ?> configs) { }
            @Override public void close() { }
            @Override public ConfigData get(String path) { throw new IllegalStateException("asked for keys only"); }
            @Override public ConfigData get(String path, Set<String> keys) {
                Map<String, String> found = new HashMap<>();
                keys.forEach(key -> found.put(key, "<" + path + "|" + key + ">"));
                return new ConfigData(found);
            }
        };
        Map<String, String> given = Map.of("a", asked.get("value").textValue());
        told.put("value", new ConfigTransformer(Map.of("p", provider)).transform(given).data().get("a"));
    }
}
