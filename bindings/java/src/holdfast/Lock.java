package holdfast;

import java.util.Map;

/** A lock that we hold, until close(). Hand the fence to what it protects: it grows whenever the lock changes hands. */
public final class Lock implements AutoCloseable {
    public final String name;
    public final long fence;
    private final Database db;
    private final Object session;
    private boolean released;

    Lock(Database db, String name, Map<String, Object> got) {
        this.db = db;
        this.name = name;
        this.session = got.get("session");
        this.fence = Long.parseLong(got.get("fence").toString());
    }

    /** Whether it is not ours any more: stop working then. */
    public synchronized boolean lost() {
        return released || !"held".equals(db.call("lock.state", Map.of("session", session)).get("state"));
    }

    /** Give it back. HF_LOST: another may have had it in between. Once more is no mistake. */
    @Override
    public synchronized void close() {
        if (!released) {
            released = true;
            db.call("lock.release", Map.of("session", session));
        }
    }
}
