import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import holdfast.Database;
import holdfast.EventStore;
import holdfast.Handling;
import holdfast.HoldfastException;
import holdfast.Json;
import holdfast.Lock;
import holdfast.Outbox;
import holdfast.PermanentException;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

public class HoldfastTest {
    private static final long LONG_S = 120; /* for what takes milliseconds */
    private static final Map<String, Object> QUICK = Map.of("poll_ms", 10, "backoff_ms", 1);
    private Database db;

    @Before
    public void open() {
        db = Database.open("memory:");
    }

    @After
    public void close() {
        db.close();
        db.close(); /* no mistake */
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(LONG_S, TimeUnit.SECONDS));
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
    }

    private static String codeOf(CompletableFuture<?> future) {
        CompletionException error = assertThrows(CompletionException.class, future::join);
        return ((HoldfastException) error.getCause()).code;
    }

    @Test
    public void jsonLosesNothing() {
        for (String text : List.of("null", "true", "[1,-2,0]", "{\"a\":{\"b\":[]},\"c\":{}}", "\"\\\"\\\\ä€😀\"", "1.50",
                "99999999999999999999", "\"\\u0000\"", "-7"))
            assertEquals(text, Json.write(Json.parse(text)));
        assertEquals(9007199254740993L, Json.parse(" 9007199254740993 "));
        assertEquals(new BigDecimal("1e-5"), Json.parse("1e-5"));
        assertEquals("ä/\n", Json.parse("\"\\u00e4\\/\\n\""));
        for (String text : List.of("", "{", "[1,]", "{\"a\"}", "tru", "1 2", "\"a", "\"\\x\"", "\"\\u12\"", "-", "{1:2}",
                "[".repeat(1000)))
            assertThrows(text, IllegalArgumentException.class, () -> Json.parse(text));
        assertThrows(IllegalArgumentException.class, () -> Json.write(new Object()));
    }

    @Test
    public void operationsAndErrors() {
        assertTrue(Database.version().matches("\\d+\\.\\d+\\.\\d+"));
        db.call("CreateTable", Map.of("TableName", "orders", "BillingMode", "PAY_PER_REQUEST",
                "AttributeDefinitions", List.of(Map.of("AttributeName", "id", "AttributeType", "S")),
                "KeySchema", List.of(Map.of("AttributeName", "id", "KeyType", "HASH"))));
        Map<String, Object> item = Map.of("id", Map.of("S", "ä😀"), "n", Map.of("N", "1.5"));
        db.call("PutItem", Map.of("TableName", "orders", "Item", item));
        assertEquals(item, db.call("GetItem", Map.of("TableName", "orders", "Key", Map.of("id", Map.of("S", "ä😀")))).get("Item"));
        HoldfastException error = assertThrows(HoldfastException.class,
                () -> db.call("GetItem", Map.of("TableName", "nothing", "Key", item)));
        assertEquals("HF_NOT_FOUND", error.code);
        assertFalse(error.retryable || error.mayHaveHappened);
        assertEquals("HF_INVALID", assertThrows(HoldfastException.class, () -> Database.open("nowhere")).code);
        assertEquals("HF_UNKNOWN_OPERATION", codeOf(db.callAsync("lock.lost", Map.of())));
    }

    @Test
    public void locksAreGivenBackByTry() {
        long fence;
        try (Lock held = db.lock("nightly", Duration.ofSeconds(LONG_S))) {
            fence = held.fence;
            assertFalse(held.lost());
            assertEquals("HF_TIMEOUT",
                    assertThrows(HoldfastException.class, () -> db.lock("nightly", Duration.ofMillis(30))).code);
        }
        try (Lock held = db.lock("nightly", null)) {
            assertTrue(held.fence > fence);
            held.close();
            assertTrue(held.lost());
        }
    }

    @Test
    public void closeEndsWhatWaits() throws Exception {
        Lock held = db.lock("nightly", null);
        List<String> codes = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch begun = new CountDownLatch(4);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Thread thread = new Thread(() -> {
                begun.countDown();
                codes.add(assertThrows(HoldfastException.class, () -> db.lock("nightly", null)).code);
            });
            thread.start();
            threads.add(thread);
        }
        await(begun);
        db.close();
        for (Thread thread : threads)
            thread.join(LONG_S * 1000);
        assertEquals(4, codes.size());
        assertTrue(codes.toString(), List.of("HF_CANCELED", "HF_STOPPED").containsAll(codes));
        assertThrows(HoldfastException.class, held::close);
        assertThrows(HoldfastException.class, () -> db.call("ListTables", Map.of()));
    }

    @Test
    public void anOutboxDeliversAgainWhatHasFailed() {
        Outbox box = db.outbox();
        Map<Object, Integer> tries = Collections.synchronizedMap(new HashMap<>());
        CountDownLatch done = new CountDownLatch(20);
        List<CompletableFuture<String>> emitted = new ArrayList<>();
        for (int i = 0; i < 20; i++)
            emitted.add(box.emit("made", "k" + i % 3, i));
        emitted.add(box.emit("broken", null, Arrays.asList("a", null)));
        assertEquals(21, emitted.stream().map(CompletableFuture::join).distinct().count());
        try (Handling handling = box.handle(event -> {
            if (event.type().equals("broken")) {
                assertEquals(Arrays.asList("a", null), event.payload());
                assertNull(event.key());
                throw new PermanentException("never");
            }
            if (tries.merge(event.payload(), 1, Integer::sum) == 1 && (Long) event.payload() % 5 == 0)
                throw new IllegalStateException("not yet");
            done.countDown();
        }, QUICK)) {
            await(done);
        }
        assertEquals(2, (int) tries.get(5L));
        assertEquals(1, (int) tries.get(6L));
    }

    @Test
    public void anEventStoreExpectsAndSubscribes() {
        EventStore store = db.events();
        assertEquals(2L, (long) store.append("order", "7", 0, new EventStore.New("placed", Map.of("total", 5)),
                new EventStore.New("paid", null)).join());
        assertEquals("HF_CONDITION", codeOf(store.append("order", "7", 0, new EventStore.New("placed", 1))));
        assertEquals(3L, (long) store.append("order", "7", 2, new EventStore.New("sent", "x")).join());
        for (int i = 0; i < 1100; i += 100) {
            EventStore.New[] many = new EventStore.New[100];
            Arrays.fill(many, new EventStore.New("t", i));
            store.append("log", "", EventStore.ANY, many).join();
        }
        List<EventStore.Event> events = store.read("order", "7", 2).join();
        assertEquals(List.of("paid", "sent"), events.stream().map(EventStore.Event::type).toList());
        assertEquals("x", events.get(1).data());
        assertEquals(1100, store.read("log", "", 1).join().size());
        assertEquals(List.of(), store.read("order", "none", 1).join());
        AtomicInteger failures = new AtomicInteger();
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch done = new CountDownLatch(3);
        try (Handling handling = store.subscribe("mailer", event -> {
            if (event.type().equals("paid") && failures.incrementAndGet() < 3)
                throw new IllegalStateException("again");
            seen.add(event.type());
            done.countDown();
        }, Map.of("poll_ms", 10, "backoff_ms", 1, "stream_domain", "order", "stream_id", "7"))) {
            await(done);
        }
        assertEquals(List.of("placed", "paid", "sent"), seen);
    }

    @Test
    public void severalThreadsAtOnce() {
        List<CompletableFuture<?>> calls = new ArrayList<>();
        for (int i = 0; i < 200; i++)
            calls.add(db.callAsync("counter.add", Map.of("id", "visits", "by", 1)));
        calls.forEach(CompletableFuture::join);
        assertEquals(200L, db.call("counter.get", Map.of("id", "visits")).get("value"));
    }
}
