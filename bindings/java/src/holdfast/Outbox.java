package holdfast;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Events that are stored, and delivered at least once, in order per key. */
public final class Outbox {
    private final Database db;
    private final String table;

    Outbox(Database db, String table) {
        this.db = db;
        this.table = table;
    }

    /** An event that was emitted; its payload is what {@link Json} makes of it. */
    public record Event(String id, String type, String key, Object payload) {
        static Event of(Map<?, ?> event) {
            return new Event((String) event.get("id"), (String) event.get("type"), (String) event.get("key"),
                    decode(event.get("payload")));
        }
    }

    static Object decode(Object stored) {
        return stored instanceof String text ? text.isEmpty() ? null : Json.parse(text) : stored;
    }

    /** Store an event; key may be null. Its id. */
    public CompletableFuture<String> emit(String type, String key, Object payload) {
        Map<String, Object> event = new LinkedHashMap<>(Map.of("type", type, "payload", Json.write(payload)));
        if (key != null)
            event.put("key", key);
        return db.callAsync("outbox.emit", Map.of("table", table, "events", List.of(event)))
                .thenApply(answer -> (String) ((List<?>) answer.get("ids")).get(0));
    }

    /**
     * Deliver all events to a function, several at a time. One that throws gets its event again, later and later; after a
     * PermanentException, or too many times, it is a dead letter. Options are those of relay.start, such as poll_ms.
     */
    public Handling handle(Consumer<Event> handler, Map<String, ?> options) {
        Map<String, Object> arguments = new LinkedHashMap<>(options);
        arguments.put("table", table);
        arguments.put("batch_max", 1);
        return db.handle("relay.start", arguments, delivery -> {
            for (Object event : (List<?>) delivery.get("events"))
                handler.accept(Event.of((Map<?, ?>) event));
        });
    }

    public Handling handle(Consumer<Event> handler) {
        return handle(handler, Map.of());
    }

    /** How many events wait. */
    public long pending() {
        return ((Number) db.call("outbox.stats", Map.of("table", table)).get("pending")).longValue();
    }
}
