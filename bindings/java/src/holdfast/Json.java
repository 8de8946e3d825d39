package holdfast;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as maps, lists, strings, booleans, null and numbers: a Long where it is whole and fits, else a BigDecimal, so
 * that no digit is lost.
 */
public final class Json {
    private static final int DEPTH_MAX = 200;
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    public static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at != text.length())
            throw json.wrong("the end");
        return value;
    }

    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value);
        return out.toString();
    }

    private static void append(StringBuilder out, Object value) {
        if (value instanceof Map<?, ?> map) {
            String comma = "";
            out.append('{');
            for (Map.Entry<?, ?> each : map.entrySet()) {
                out.append(comma);
                quote(out, String.valueOf(each.getKey()));
                out.append(':');
                append(out, each.getValue());
                comma = ",";
            }
            out.append('}');
        } else if (value instanceof Iterable<?> list) {
            String comma = "";
            out.append('[');
            for (Object each : list) {
                out.append(comma);
                append(out, each);
                comma = ",";
            }
            out.append(']');
        } else if (value instanceof CharSequence) {
            quote(out, value.toString());
        } else if (value instanceof Double || value instanceof Float) {
            out.append(new BigDecimal(value.toString()));
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            throw new IllegalArgumentException("JSON has no " + value.getClass().getName()
                    + ": use maps, lists, strings, numbers, booleans and null");
        }
    }

    private static void quote(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\')
                out.append('\\').append(c);
            else if (c < ' ')
                out.append(String.format("\\u%04x", (int) c));
            else
                out.append(c);
        }
        out.append('"');
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("JSON: expected " + wanted + " at character " + (at + 1));
    }

    private char space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0)
            at++;
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private void expect(char c) {
        if (space() != c)
            throw wrong("'" + c + "'");
        at++;
    }

    private Object value(int depth) {
        char c = space();
        if (depth > DEPTH_MAX)
            throw wrong("fewer levels");
        switch (c) {
        case '{':
            return object(depth);
        case '[':
            return list(depth);
        case '"':
            return string();
        case 't':
            return word("true", true);
        case 'f':
            return word("false", false);
        case 'n':
            return word("null", null);
        default:
            return number();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at))
            throw wrong("a value");
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> map = new LinkedHashMap<>();
        expect('{');
        if (space() == '}') {
            at++;
            return map;
        }
        for (;;) {
            if (space() != '"')
                throw wrong("a name");
            String name = string();
            expect(':');
            map.put(name, value(depth + 1));
            if (space() != ',')
                break;
            at++;
        }
        expect('}');
        return map;
    }

    private List<Object> list(int depth) {
        List<Object> list = new ArrayList<>();
        expect('[');
        if (space() == ']') {
            at++;
            return list;
        }
        for (;;) {
            list.add(value(depth + 1));
            if (space() != ',')
                break;
            at++;
        }
        expect(']');
        return list;
    }

    private Object number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0)
            at++;
        try {
            String digits = text.substring(from, at);
            if (digits.matches("-?\\d{1,18}"))
                return Long.valueOf(digits);
            return new BigDecimal(digits);
        } catch (NumberFormatException error) {
            at = from;
            throw wrong("a value");
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        at++;
        for (;;) {
            if (at >= text.length())
                throw wrong("'\"'");
            char c = text.charAt(at++);
            if (c == '"')
                return out.toString();
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() {
        char c = at < text.length() ? text.charAt(at++) : '\0';
        int which = "\"\\/bfnrt".indexOf(c);
        if (which >= 0)
            return "\"\\/\b\f\n\r\t".charAt(which);
        try {
            if (c == 'u') {
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            }
        } catch (IndexOutOfBoundsException | NumberFormatException error) {
            at -= 4;
        }
        throw wrong("an escape");
    }
}
