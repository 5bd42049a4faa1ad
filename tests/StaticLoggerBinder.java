// For tests: what Kafka logs at INFO and above goes to standard error, with Kafka's own pattern: [%d] %p %m (%c)
package org.slf4j.impl;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.Set;
import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.helpers.FormattingTuple;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.spi.LoggerFactoryBinder;

public class StaticLoggerBinder implements LoggerFactoryBinder {
    public static String REQUESTED_API_VERSION = "1.6.99";
    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();
    private static final Set<String> LEVELS = Set.of("info", "warn", "error");
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss,SSS");

    public static StaticLoggerBinder getSingleton() { return SINGLETON; }
    public ILoggerFactory getLoggerFactory() { return StaticLoggerBinder::logger; }
    public String getLoggerFactoryClassStr() { return "StaticLoggerBinder"; }

    static Logger logger(String name) {
        InvocationHandler handler = (proxy, method, arguments) -> {
            String what = method.getName();
            if (what.equals("getName") || what.equals("toString"))
                return name;
            if (method.getReturnType() == boolean.class)
                return LEVELS.contains(what.replaceAll("^is|Enabled$", "").toLowerCase());
            if (LEVELS.contains(what) && arguments[0] instanceof String text) {
                Object[] values = arguments.length == 2 && arguments[1] instanceof Object[] several
                    ? several : Arrays.copyOfRange(arguments, 1, arguments.length);
                FormattingTuple message = MessageFormatter.arrayFormat(text, values);
                System.err.println("[" + TIME.format(LocalDateTime.now()) + "] " + what.toUpperCase() + " "
                    + message.getMessage() + " (" + name + ")");
            }
            return null;
        };
        return (Logger) Proxy.newProxyInstance(Logger.class.getClassLoader(), new Class<?>[] {Logger.class}, handler);
    }
}
