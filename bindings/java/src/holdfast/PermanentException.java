package holdfast;

/** Thrown by a handler: trying again is of no use. */
public class PermanentException extends RuntimeException {
    private static final long serialVersionUID = 1;

    public PermanentException(String message) {
        super(message);
    }
}
