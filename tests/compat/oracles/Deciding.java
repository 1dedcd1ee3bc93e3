import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.AlterClientQuotasRequestData;
import org.apache.kafka.common.message.AlterUserScramCredentialsRequestData;
import org.apache.kafka.common.message.CreateAclsRequestData;
import org.apache.kafka.common.message.CreateDelegationTokenRequestData;
import org.apache.kafka.common.message.DeleteAclsRequestData;
import org.apache.kafka.common.message.ExpireDelegationTokenRequestData;
import org.apache.kafka.common.message.RenewDelegationTokenRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.DelegationTokenRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.AlterClientQuotasRequest;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.CreateAclsRequest;
import org.apache.kafka.common.requests.DeleteAclsRequest;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.metadata.DelegationTokenData;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What Kafka's controller decides on a request, given the records before it: {kind, level, records, version, request}
 * gives the records that it writes and what it replies. Records and requests are hex of their bytes.
 */
public class Deciding {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "off");
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode said = JSON.createObjectNode();
            switch (asked.get("kind").asText()) {
                case "create acls" -> createAcls(asked, said);
                case "delete acls" -> deleteAcls(asked, said);
                case "quotas" -> quotas(asked, said);
                case "scram" -> scram(asked, said);
                default -> tokens(asked, said);
            }
            out.println(JSON.writeValueAsString(said));
        }
        out.flush();
    }

    private static Object manager(String name, JsonNode asked) throws Exception {
        Constructor<?> made = Class.forName("org.apache.kafka.controller." + name + "$Builder").getDeclaredConstructor();
        made.setAccessible(true);
        Object manager = call(made.newInstance(), "build");
        for (ApiMessage record : records(asked)) {
            Method replay = manager.getClass().getMethod("replay", record.getClass());
            replay.invoke(manager, record);
        }
        return manager;
    }

    private static List<ApiMessage> records(JsonNode asked) {
        List<ApiMessage> records = new ArrayList<>();
        for (JsonNode record : asked.get("records")) {
            byte[] raw = HEX.parseHex(record.asText());
            records.add(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(raw)), raw.length).message());
        }
        return records;
    }

    private static Object call(Object on, String name, Object... given) throws Exception {
        for (Method method : on.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == given.length) {
                method.setAccessible(true);
                try {
                    return method.invoke(on, given);
                } catch (InvocationTargetException failed) {
                    throw (Exception) failed.getCause();
                }
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static Object tell(Object result, ObjectNode said) throws Exception {
        ArrayNode records = said.putArray("records");
        for (Object each : (List<?>) call(result, "records")) {
            ApiMessageAndVersion record = (ApiMessageAndVersion) each;
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
            records.add(HEX.formatHex(buffer.array()));
        }
        return call(result, "response");
    }

    private static ByteBufferAccessor request(JsonNode asked) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(asked.get("request").asText())));
    }

    private static short version(JsonNode asked) {
        return (short) asked.get("version").asInt();
    }

    private static void error(ObjectNode said, ApiException refused) {
        said.put("error", refused == null ? 0 : Errors.forException(refused).code());
        said.put("why", refused == null ? null : refused.getMessage());
    }

    private static void createAcls(JsonNode asked, ObjectNode said) throws Exception {
        CreateAclsRequestData data = new CreateAclsRequestData(request(asked), version(asked));
        List<AclBinding> bindings = data.creations().stream().map(CreateAclsRequest::aclBinding).toList();
        Object reply = tell(call(manager("AclControlManager", asked), "createAcls", bindings), said);
        ArrayNode results = said.putArray("reply");
        for (Object result : (List<?>) reply) {
            error(results.addObject(), ((AclCreateResult) result).exception().orElse(null));
        }
    }

    private static void deleteAcls(JsonNode asked, ObjectNode said) throws Exception {
        DeleteAclsRequestData data = new DeleteAclsRequestData(request(asked), version(asked));
        Object filters = new DeleteAclsRequest.Builder(data).build(version(asked)).filters();
        Object reply = tell(call(manager("AclControlManager", asked), "deleteAcls", filters), said);
        ArrayNode results = said.putArray("reply");
        for (Object each : (List<?>) reply) {
            AclDeleteResult result = (AclDeleteResult) each;
            ObjectNode told = results.addObject();
            error(told, result.exception().orElse(null));
            ArrayNode deleted = told.putArray("deleted");
            for (AclDeleteResult.AclBindingDeleteResult one : result.aclBindingDeleteResults()) {
                StandardAcl acl = StandardAcl.fromAclBinding(one.aclBinding());
                ArrayNode entry = deleted.addArray();
                entry.add(acl.resourceType().code()).add(acl.resourceName()).add(acl.patternType().code());
                entry.add(acl.principal()).add(acl.host()).add(acl.operation().code()).add(acl.permissionType().code());
            }
        }
    }

    private static void quotas(JsonNode asked, ObjectNode said) throws Exception {
        AlterClientQuotasRequestData data = new AlterClientQuotasRequestData(request(asked), version(asked));
        Object alterations = new AlterClientQuotasRequest(data, version(asked)).entries();
        Object reply = tell(call(manager("ClientQuotaControlManager", asked), "alterClientQuotas", alterations), said);
        ArrayNode results = said.putArray("reply");
        for (Map.Entry<?, ?> each : ((Map<?, ?>) reply).entrySet()) {
            ObjectNode told = results.addObject();
            ApiError error = (ApiError) each.getValue();
            told.put("error", error.error().code()).put("why", error.isSuccess() ? null : error.message());
            ArrayNode entity = told.putArray("entity");
            ((ClientQuotaEntity) each.getKey()).entries().forEach((type, name) -> entity.addArray().add(type).add(name));
        }
    }

    private static void scram(JsonNode asked, ObjectNode said) throws Exception {
        Object data = new AlterUserScramCredentialsRequestData(request(asked), version(asked));
        Object manager = manager("ScramControlManager", asked);
        ApiMessage reply = (ApiMessage) tell(call(manager, "alterCredentials", data, level(asked)), said);
        said.put("reply", HEX.formatHex(MessageUtil.toByteBufferAccessor(reply, version(asked)).buffer().array()));
    }

    private static MetadataVersion level(JsonNode asked) {
        return MetadataVersion.fromFeatureLevel((short) asked.get("level").asInt());
    }

    private static void tokens(JsonNode asked, ObjectNode said) throws Exception {
        Constructor<?> made =
            Class.forName("org.apache.kafka.controller.DelegationTokenControlManager$Builder").getDeclaredConstructor();
        made.setAccessible(true);
        Object builder = made.newInstance();
        DelegationTokenCache cache = new DelegationTokenCache(List.of());
        String secret = asked.get("secret").isNull() ? null : asked.get("secret").asText();
        call(builder, "setTokenCache", cache);
        call(builder, "setDelegationTokenSecretKey", secret);
        call(builder, "setDelegationTokenMaxLifeMs", asked.get("lifetime").asLong());
        call(builder, "setDelegationTokenExpiryTimeMs", asked.get("expiry").asLong());
        Object manager = call(builder, "build");
        Field time = manager.getClass().getDeclaredField("time");
        time.setAccessible(true);
        time.set(manager, new Standing(asked.get("now").asLong()));
        for (ApiMessage record : records(asked)) {
            TokenInformation token = DelegationTokenData.fromRecord((DelegationTokenRecord) record).tokenInformation();
            cache.updateCache(new DelegationToken(token, hmac(secret, token.tokenId())), Map.of());
        }
        KafkaPrincipal principal = new KafkaPrincipal(asked.get("principal").get(0).asText(), asked.get("principal").get(1).asText());
        ControllerRequestContext context = new ControllerRequestContext(new RequestHeaderData(), principal, OptionalLong.empty());
        switch (asked.get("kind").asText()) {
            case "create token" -> reply(asked, said, call(manager, "createDelegationToken", context,
                new CreateDelegationTokenRequestData(request(asked), version(asked)), level(asked)));
            case "renew token" -> reply(asked, said, call(manager, "renewDelegationToken", context,
                new RenewDelegationTokenRequestData(request(asked), version(asked)), level(asked)));
            case "expire token" -> reply(asked, said, call(manager, "expireDelegationToken", context,
                new ExpireDelegationTokenRequestData(request(asked), version(asked)), level(asked)));
            default -> tell(call(manager, "sweepExpiredDelegationTokens"), said);
        }
    }

    private static void reply(JsonNode asked, ObjectNode said, Object result) throws Exception {
        ApiMessage reply = (ApiMessage) tell(result, said);
        said.put("reply", HEX.formatHex(MessageUtil.toByteBufferAccessor(reply, version(asked)).buffer().array()));
    }

    private static byte[] hmac(String secret, String tokenId) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA512");
        String key = Optional.ofNullable(secret).orElse("off");
        mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), mac.getAlgorithm()));
        return mac.doFinal(tokenId.getBytes(StandardCharsets.UTF_8));
    }

    /** A clock that was told the time. */
    private record Standing(long now) implements Time {
        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }
}
