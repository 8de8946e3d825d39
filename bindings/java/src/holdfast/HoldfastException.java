package holdfast;

import java.util.Map;

/** What went wrong. docs/errors.md lists the codes. */
public class HoldfastException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Such as "HF_CONDITION". */
    public final String code;
    /** The same call may succeed later. */
    public final boolean retryable;
    /** The effect may be there although the call failed. */
    public final boolean mayHaveHappened;

    HoldfastException(String code, String message, boolean retryable, boolean mayHaveHappened) {
        super(message);
        this.code = code;
        this.retryable = retryable;
        this.mayHaveHappened = mayHaveHappened;
    }

    static HoldfastException of(String method, String json) {
        Map<?, ?> error = (Map<?, ?>) Json.parse(json);
        Object message = error.get("message");
        return new HoldfastException(String.valueOf(error.get("code")),
                message == null ? method + ": " + error.get("code") : message.toString(),
                Boolean.TRUE.equals(error.get("retryable")), Boolean.TRUE.equals(error.get("may_have_happened")));
    }
}
