//! Values of scripts outside of expressions.

use riops_script::Value;

/// Returns the line that `debug()` of pgbench prints for a value.
pub(super) fn debug_text((script, command): (usize, usize), value: Value) -> String {
    let kind = match value {
        Value::Null => "",
        Value::Boolean(_) => "boolean ",
        Value::Int(_) => "int ",
        Value::Double(_) => "double ",
    };
    let value = if value == Value::Null { "null".to_owned() } else { value.to_string() };
    format!("debug(script={script},command={command}): {kind}{value}")
}

/// Returns the integer with which a text begins, or 0.
pub(super) fn leading_integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(text.first().is_some_and(|first| matches!(first, b'-' | b'+')));
    let digits = text.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
    let number = text.get(..sign + digits).and_then(|number| std::str::from_utf8(number).ok());
    number.and_then(|number| number.trim_start_matches('+').parse().ok()).unwrap_or(0)
}
