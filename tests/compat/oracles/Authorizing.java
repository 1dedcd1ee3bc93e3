import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * What StandardAuthorizer says: {super, everyone, acls, asks, filters} gives for every ask whether the operation is
 * allowed on the resource and on any resource of its type, and for every filter which of the ACLs it finds.
 */
public class Authorizing {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        out.flush();
    }

    private static ObjectNode answer(JsonNode asked) throws Exception {
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (JsonNode acl : asked.get("acls")) {
            acls.put(new Uuid(1, 1000 + acls.size()), acl(acl));
        }
        ObjectNode said = JSON.createObjectNode();
        try (Metrics metrics = new Metrics()) {
            StandardAuthorizer authorizer = new StandardAuthorizer();
            authorizer.configure(Map.of(
                "super.users", asked.get("super").asText(),
                "allow.everyone.if.no.acl.found", asked.get("everyone").asText()));
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            ArrayNode allowed = said.putArray("allowed");
            ArrayNode any = said.putArray("any");
            for (JsonNode ask : asked.get("asks")) {
                AuthorizableRequestContext context = context(ask.get(0).asText(), ask.get(1).asText(), ask.get(2).asText());
                AclOperation operation = AclOperation.fromCode((byte) ask.get(3).asInt());
                ResourceType type = ResourceType.fromCode((byte) ask.get(4).asInt());
                ResourcePattern resource = new ResourcePattern(type, ask.get(5).asText(), PatternType.LITERAL);
                Action action = new Action(operation, resource, 1, false, false);
                allowed.add(authorizer.authorize(context, List.of(action)).get(0) == AuthorizationResult.ALLOWED);
                any.add(byType(authorizer, context, operation, type));
            }
            ArrayNode found = said.putArray("found");
            for (JsonNode filter : asked.get("filters")) {
                found.add(found(authorizer, filter));
            }
        }
        return said;
    }

    private static String byType(
        StandardAuthorizer authorizer, AuthorizableRequestContext context, AclOperation operation, ResourceType type) {
        try {
            return authorizer.authorizeByResourceType(context, operation, type).name();
        } catch (IllegalArgumentException unasked) {
            return "UNASKED";
        }
    }

    private static ArrayNode found(StandardAuthorizer authorizer, JsonNode filter) {
        ArrayNode names = JSON.createArrayNode();
        AclBindingFilter asked = new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromCode((byte) filter.get(0).asInt()),
                text(filter.get(1)),
                PatternType.fromCode((byte) filter.get(2).asInt())),
            new AccessControlEntryFilter(
                text(filter.get(3)),
                text(filter.get(4)),
                AclOperation.fromCode((byte) filter.get(5).asInt()),
                AclPermissionType.fromCode((byte) filter.get(6).asInt())));
        for (AclBinding binding : authorizer.acls(asked)) {
            StandardAcl acl = StandardAcl.fromAclBinding(binding);
            ArrayNode entry = names.addArray();
            entry.add(acl.resourceType().code()).add(acl.resourceName()).add(acl.patternType().code());
            entry.add(acl.principal()).add(acl.host()).add(acl.operation().code()).add(acl.permissionType().code());
        }
        return names;
    }

    private static StandardAcl acl(JsonNode acl) {
        return new StandardAcl(
            ResourceType.fromCode((byte) acl.get(0).asInt()),
            acl.get(1).asText(),
            PatternType.fromCode((byte) acl.get(2).asInt()),
            acl.get(3).asText(),
            acl.get(4).asText(),
            AclOperation.fromCode((byte) acl.get(5).asInt()),
            AclPermissionType.fromCode((byte) acl.get(6).asInt()));
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    private static AuthorizableRequestContext context(String kind, String name, String host) throws Exception {
        InetAddress address = InetAddress.getByName(host);
        KafkaPrincipal principal = new KafkaPrincipal(kind, name);
        return new AuthorizableRequestContext() {
            @Override public String listenerName() { return "SASL_SSL"; }
            @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_SSL; }
            @Override public KafkaPrincipal principal() { return principal; }
            @Override public InetAddress clientAddress() { return address; }
            @Override public int requestType() { return 3; }
            @Override public int requestVersion() { return 0; }
            @Override public String clientId() { return ""; }
            @Override public int correlationId() { return 1; }
        };
    }
}
