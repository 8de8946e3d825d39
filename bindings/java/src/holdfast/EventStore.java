package holdfast;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Streams of events that only grow. */
public final class EventStore {
    /** Whatever the stream has. */
    public static final long ANY = -1;
    private static final int PAGE = 1000;
    private final Database db;
    private final String table;

    EventStore(Database db, String table) {
        this.db = db;
        this.table = table;
    }

    /** A new event; its data is what {@link Json} takes. */
    public record New(String type, Object data) {
    }

    /** A stored one: version is its place in its stream, position that in all. */
    public record Event(String id, String domain, String stream, long version, String position, String type, Object data) {
        static Event of(Map<?, ?> event) {
            return new Event((String) event.get("id"), (String) event.get("domain"), (String) event.get("stream"),
                    Long.parseLong(event.get("version").toString()), (String) event.get("position"),
                    (String) event.get("type"), Outbox.decode(event.get("payload")));
        }
    }

    /**
     * Append to a stream, all or nothing, if it is at that version: 0 for a new one, or ANY. The version that it is at
     * then. HF_CONDITION: it is at another one.
     */
    public CompletableFuture<Long> append(String domain, String stream, long expected, New... events) {
        Map<String, Object> arguments = new LinkedHashMap<>(Map.of("table", table, "domain", domain, "id", stream));
        List<Object> list = new ArrayList<>();
        for (New event : events)
            list.add(Map.of("type", event.type(), "payload", Json.write(event.data())));
        arguments.put("events", list);
        if (expected == 0)
            arguments.put("expect", "none");
        else if (expected > 0)
            arguments.putAll(Map.of("expect", "version", "version", expected));
        else if (expected != ANY)
            throw new IllegalArgumentException("expected is a version, 0 or ANY, not " + expected);
        return db.callAsync("events.append", arguments).thenApply(answer -> Long.parseLong(answer.get("last").toString()));
    }

    /** The events of a stream from a version on. */
    public CompletableFuture<List<Event>> read(String domain, String stream, long from) {
        Map<String, Object> arguments = new LinkedHashMap<>(
                Map.of("table", table, "domain", domain, "id", stream, "limit", PAGE, "from", from));
        return page(arguments, new ArrayList<>());
    }

    private CompletableFuture<List<Event>> page(Map<String, Object> arguments, List<Event> soFar) {
        return db.callAsync("events.read", arguments).thenCompose(answer -> {
            if (answer.get("events") instanceof List<?> list)
                for (Object event : list)
                    soFar.add(Event.of((Map<?, ?>) event));
            Object next = answer.get("next");
            if (next == null || next.toString().equals("0"))
                return CompletableFuture.completedFuture(soFar);
            arguments.put("from", next);
            return page(arguments, soFar);
        });
    }

    /**
     * All events to a function, one after another, from where this subscription was; one process at a time has it. An
     * event whose function throws comes again. Options are those of events.subscribe.
     */
    public Handling subscribe(String name, Consumer<Event> handler, Map<String, ?> options) {
        Map<String, Object> arguments = new LinkedHashMap<>(options);
        arguments.putAll(Map.of("table", table, "name", name));
        return db.handle("events.subscribe", arguments, delivery -> {
            for (Object event : (List<?>) delivery.get("events"))
                handler.accept(Event.of((Map<?, ?>) event));
        });
    }
}
