package holdfast;

import com.sun.jna.Library;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.nio.charset.StandardCharsets;

/** The functions of the library. Sizes are those of 64-bit systems. */
interface Native extends Library {
    int hf_bind_open_url(byte[] url, long urlLen, byte[] options, long optionsLen, PointerByReference bind,
            PointerByReference answer, LongByReference answerLen);

    int hf_bind_request(Pointer bind, byte[] method, long methodLen, byte[] json, long jsonLen,
            PointerByReference answer, LongByReference answerLen);

    int hf_bind_cancel(Pointer bind, long cancel);

    void hf_bind_free(Pointer answer);

    void hf_bind_close(Pointer bind);

    String hf_version();

    /** Loaded by the first use; the property holdfast.library or HOLDFAST_LIBRARY names another file. */
    final class Loaded {
        static final Native C = com.sun.jna.Native.load(name(), Native.class);

        private Loaded() {
        }

        private static String name() {
            String name = System.getProperty("holdfast.library", System.getenv("HOLDFAST_LIBRARY"));
            return name != null ? name : "libholdfast-engine.so.0.3";
        }
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The answer as a text, which is freed; what failed is thrown. */
    static String take(String method, int status, PointerByReference answer, LongByReference len) {
        Pointer pointer = answer.getValue();
        if (pointer == null)
            throw new OutOfMemoryError("holdfast: there is no memory for the answer of " + method);
        String text;
        try {
            text = new String(pointer.getByteArray(0, (int) len.getValue()), StandardCharsets.UTF_8);
        } finally {
            Loaded.C.hf_bind_free(pointer);
        }
        if (status != 0)
            throw HoldfastException.of(method, text);
        return text;
    }
}
