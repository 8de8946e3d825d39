package holdfast;

import java.util.Map;

/** Something that handles deliveries, until close(). */
public final class Handling implements AutoCloseable {
    private static final int DRAIN_MS = 10000;
    private final Database db;
    private final long session;

    Handling(Database db, long session) {
        this.db = db;
        this.session = session;
    }

    /** Begin nothing more, and wait for what runs. Once more is no mistake. */
    @Override
    public void close() {
        try {
            db.call("session.close", Map.of("session", session, "drain_ms", DRAIN_MS));
        } catch (HoldfastException error) {
            if (!error.code.equals("HF_NOT_FOUND") && !error.code.equals("HF_STOPPED"))
                throw error;
        } finally {
            db.forget(session);
        }
    }
}
