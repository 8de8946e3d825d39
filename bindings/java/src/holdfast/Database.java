package holdfast;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;

/**
 * A database: a directory in this process ("embedded:shop.db"), memory ("memory:"), a server
 * ("http://127.0.0.1:8000"), Amazon's service ("dynamodb://eu-central-1"). Any thread may use it.
 *
 * <pre>
 * try (Database db = Database.open("embedded:shop.db"); Lock held = db.lock("nightly", Duration.ofSeconds(10))) {
 *     db.outbox().emit("order.placed", "7", Map.of("id", "7")).join();
 * }
 * </pre>
 */
public final class Database implements AutoCloseable {
    private static final int WAIT_MS = 60000; /* then it is asked again */
    private static final int AT_ONCE = 64; /* deliveries in one answer */
    private static final int WAITS = 1; /* the number of calls that may wait for long */
    private static final int CANCEL_MS = 20; /* how often those are canceled that had not begun */

    private final Pointer bind;
    private final ReentrantReadWriteLock use = new ReentrantReadWriteLock(true); /* calls read, close() writes */
    private final ExecutorService threads;
    private final Map<Long, Consumer<Map<String, Object>>> handlers = new ConcurrentHashMap<>();
    private boolean listens; /* guarded by handlers */
    private volatile boolean closing;

    private Database(Pointer bind) {
        this.bind = bind;
        this.threads = Executors.newCachedThreadPool(work -> {
            Thread thread = new Thread(work, "holdfast");
            thread.setDaemon(true);
            return thread;
        });
    }

    public static Database open(String url) {
        PointerByReference bind = new PointerByReference(), answer = new PointerByReference();
        LongByReference len = new LongByReference();
        byte[] text = Native.utf8(url);
        Native.take("open",
                Native.Loaded.C.hf_bind_open_url(text, text.length, new byte[0], 0, bind, answer, len), answer, len);
        return new Database(bind.getValue());
    }

    public static String version() {
        return Native.Loaded.C.hf_version();
    }

    /** An operation of DynamoDB such as "PutItem", or a method of docs/methods.md: JSON in and out. */
    public String request(String method, String json) {
        byte[] name = Native.utf8(method), text = Native.utf8(json);
        PointerByReference answer = new PointerByReference();
        LongByReference len = new LongByReference();
        if (closing || !use.readLock().tryLock())
            throw new HoldfastException("HF_STOPPED", "the database is closed", false, false);
        try {
            if (closing)
                throw new HoldfastException("HF_STOPPED", "the database is closed", false, false);
            return Native.take(method,
                    Native.Loaded.C.hf_bind_request(bind, name, name.length, text, text.length, answer, len), answer,
                    len);
        } finally {
            use.readLock().unlock();
        }
    }

    /** The same with maps; see {@link Json}. */
    @SuppressWarnings("unchecked")
    public Map<String, Object> call(String method, Map<String, ?> arguments) {
        return (Map<String, Object>) Json.parse(request(method, Json.write(arguments)));
    }

    public CompletableFuture<Map<String, Object>> callAsync(String method, Map<String, ?> arguments) {
        return CompletableFuture.supplyAsync(() -> call(method, arguments), threads);
    }

    /** Acquire a lock, waiting for it at most so long; null: as long as it takes. */
    public Lock lock(String name, Duration timeout) {
        Map<String, Object> arguments = new LinkedHashMap<>(Map.of("name", name, "cancel", WAITS));
        if (timeout != null)
            arguments.put("deadline_ms", Math.max(1, timeout.toMillis()));
        return new Lock(this, name, call("lock.acquire", arguments));
    }

    public Outbox outbox() {
        return new Outbox(this, "outbox");
    }

    public Outbox outbox(String table) {
        return new Outbox(this, table);
    }

    public EventStore events() {
        return new EventStore(this, "events");
    }

    public EventStore events(String table) {
        return new EventStore(this, table);
    }

    /** Begin a session whose deliveries `work` gets, each on a thread; what it throws is the failure. */
    Handling handle(String method, Map<String, ?> arguments, Consumer<Map<String, Object>> work) {
        synchronized (handlers) { /* nothing is taken before its handler is known */
            long session = ((Number) call(method, arguments).get("session")).longValue();
            handlers.put(session, work);
            if (!listens)
                threads.execute(this::listen);
            listens = true;
            return new Handling(this, session);
        }
    }

    void forget(long session) {
        handlers.remove(session);
    }

    @SuppressWarnings("unchecked")
    private void listen() {
        while (!closing) {
            try {
                Object deliveries = call("session.next", Map.of("limit", AT_ONCE, "wait_ms", WAIT_MS, "cancel", WAITS)).get("deliveries");
                if (deliveries instanceof List<?> list)
                    for (Object each : list)
                        threads.execute(() -> deliver((Map<String, Object>) each));
            } catch (HoldfastException error) {
                if (!error.code.equals("HF_TIMEOUT"))
                    return; /* it is closed */
            }
        }
    }

    private void deliver(Map<String, Object> delivery) {
        Map<String, Object> answer = new LinkedHashMap<>(Map.of("token", delivery.get("token")));
        try {
            Consumer<Map<String, Object>> work;
            synchronized (handlers) {
                work = handlers.get(((Number) delivery.get("session")).longValue());
            }
            if (work == null)
                throw new IllegalStateException("the handler has ended");
            work.accept(delivery);
        } catch (Throwable error) { /* whatever a handler throws is its failure */
            answer.put("error", Map.of("message", String.valueOf(error.getMessage()), "permanent",
                    error instanceof PermanentException));
        }
        try {
            call("session.done", answer);
        } catch (HoldfastException error) {
            /* HF_LOST: it took too long, and is delivered again. Or the database is closed. */
        }
    }

    /** Cancels what waits, waits for it, and closes the database. Once more is no mistake. */
    @Override
    public void close() {
        synchronized (this) {
            if (closing)
                return;
            closing = true;
        }
        boolean interrupted = false;
        for (boolean alone = false; !alone;) { /* no call is under way then, and none begins */
            Native.Loaded.C.hf_bind_cancel(bind, WAITS);
            try {
                alone = use.writeLock().tryLock(CANCEL_MS, TimeUnit.MILLISECONDS);
            } catch (InterruptedException error) {
                interrupted = true;
            }
        }
        Native.Loaded.C.hf_bind_close(bind);
        use.writeLock().unlock();
        threads.shutdown();
        if (interrupted)
            Thread.currentThread().interrupt();
    }
}
