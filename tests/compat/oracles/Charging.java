import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.DescribeClientQuotasRequestData;
import org.apache.kafka.common.message.DescribeClientQuotasResponseData;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.ClientQuotaImage;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * Rates, token buckets, limits of clients and filters over quotas, by `kind`. Times are milliseconds since the epoch,
 * so token buckets are full when they are first asked.
 */
public class Charging {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode said = JSON.createObjectNode();
            switch (asked.get("kind").asText()) {
                case "rate" -> rate(asked, said);
                case "tokens" -> tokens(asked, said);
                case "clients" -> clients(asked, said);
                default -> describe(asked, said);
            }
            out.println(JSON.writeValueAsString(said));
        }
        out.flush();
        System.exit(0);
    }

    private static MetricConfig config(JsonNode asked) {
        return new MetricConfig()
            .quota(Quota.upperBound(asked.get("limit").asDouble()))
            .samples(11)
            .timeWindow(1, TimeUnit.SECONDS);
    }

    private static Sensor sensor(Metrics metrics, MetricConfig config, MeasurableStat stat) {
        Sensor sensor = metrics.sensor("s", config);
        sensor.add(new MetricName("m", "g", "", Map.of()), stat, config);
        return sensor;
    }

    private static void rate(JsonNode asked, ObjectNode said) {
        ArrayNode pauses = said.putArray("pauses");
        ArrayNode rates = said.putArray("rates");
        try (Metrics metrics = new Metrics()) {
            MetricConfig config = config(asked);
            Rate rate = new Rate();
            Sensor sensor = sensor(metrics, config, rate);
            for (JsonNode event : asked.get("events")) {
                long now = event.get(0).asLong();
                long pause = 0;
                if (!event.get(1).isNull()) {
                    try {
                        sensor.record(event.get(1).asDouble(), now, true);
                    } catch (QuotaViolationException over) {
                        pause = QuotaUtils.throttleTime(over, now);
                    }
                }
                pauses.add(pause);
                rates.add(rate.measure(config, now));
            }
        }
    }

    private static void tokens(JsonNode asked, ObjectNode said) {
        ArrayNode pauses = said.putArray("pauses");
        ArrayNode left = said.putArray("tokens");
        try (Metrics metrics = new Metrics()) {
            MetricConfig config = config(asked);
            TokenBucket bucket = new TokenBucket();
            Sensor sensor = sensor(metrics, config, bucket);
            for (JsonNode event : asked.get("events")) {
                long now = event.get(0).asLong();
                double count = event.get(1).asDouble();
                long pause = 0;
                try {
                    if (event.get(2).asBoolean()) {
                        sensor.checkQuotas(now);
                        sensor.record(count, now, false);
                    } else {
                        sensor.record(count, now, true);
                    }
                } catch (QuotaViolationException over) {
                    pause = ControllerMutationQuotaManager.throttleTimeMs(over);
                }
                pauses.add(pause);
                left.add(bucket.measure(config, now));
            }
        }
    }

    private static void clients(JsonNode asked, ObjectNode said) throws Exception {
        ArrayNode pauses = said.putArray("pauses");
        ArrayNode limits = said.putArray("limits");
        try (Metrics metrics = new Metrics()) {
            ClientQuotaManager manager = new ClientQuotaManager(
                new ClientQuotaManagerConfig(11, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "");
            for (JsonNode limit : asked.get("limits")) {
                set(manager, limit);
            }
            for (JsonNode event : asked.get("events")) {
                if (event.size() == 3) {
                    set(manager, event);
                    continue;
                }
                Session session = new Session(
                    new KafkaPrincipal("User", event.get(0).asText()), InetAddress.getLoopbackAddress());
                String client = event.get(1).asText();
                pauses.add(manager.recordAndGetThrottleTimeMs(
                    session, client, event.get(2).asDouble(), event.get(3).asLong()));
                limits.add(manager.maxValueInQuotaWindow(session, client));
            }
            manager.shutdown();
        }
    }

    private static void set(ClientQuotaManager manager, JsonNode limit) {
        manager.updateQuota(
            entity(limit.get(0), ClientQuotaManager.DEFAULT_USER_ENTITY, true),
            entity(limit.get(1), ClientQuotaManager.DEFAULT_USER_CLIENT_ID, false),
            Optional.of(Quota.upperBound(limit.get(2).asDouble())));
    }

    private static Optional<ConfigEntity> entity(JsonNode name, ConfigEntity byDefault, boolean user) {
        if (name.isNull()) {
            return Optional.of(byDefault);
        }
        if (name.asText().isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(user
            ? new ClientQuotaManager.UserEntity(name.asText())
            : new ClientQuotaManager.ClientIdEntity(name.asText()));
    }

    private static void describe(JsonNode asked, ObjectNode said) {
        Map<ClientQuotaEntity, ClientQuotaImage> entities = new HashMap<>();
        for (JsonNode quota : asked.get("quotas")) {
            entities.put(new ClientQuotaEntity(names(quota)), new ClientQuotaImage(Map.of("producer_byte_rate", 1.0)));
        }
        DescribeClientQuotasRequestData request =
            new DescribeClientQuotasRequestData().setStrict(asked.get("strict").asBoolean());
        for (JsonNode component : asked.get("components")) {
            request.components().add(new DescribeClientQuotasRequestData.ComponentData()
                .setEntityType(component.get(0).asText())
                .setMatchType((byte) component.get(1).asInt())
                .setMatch(component.get(2).isNull() ? null : component.get(2).asText()));
        }
        ArrayNode found = said.putArray("found");
        try {
            for (DescribeClientQuotasResponseData.EntryData entry : new ClientQuotasImage(entities).describe(request).entries()) {
                ArrayNode parts = found.addArray();
                for (DescribeClientQuotasResponseData.EntityData part : entry.entity()) {
                    parts.addArray().add(part.entityType()).add(part.entityName());
                }
            }
            said.put("error", 0).put("why", "");
        } catch (ApiException refused) {
            said.put("error", Errors.forException(refused).code()).put("why", refused.getMessage());
        }
    }

    private static Map<String, String> names(JsonNode quota) {
        Map<String, String> names = new HashMap<>();
        for (JsonNode part : quota) {
            names.put(part.get(0).asText(), part.get(1).isNull() ? null : part.get(1).asText());
        }
        return names;
    }
}
