//! JSON documents from bytes. Bytes that change a valid document reach more than bytes that are a document.

use serde_json::Value;

/// Maximum number of copies of an array element.
const COPIES_MAX: usize = 1_000;

/// Returns the text of a document: the bytes themselves if they begin with `{`, or else one of `documents` with changes.
///
/// The first byte chooses the document. Each line after it is one change: the number of a value in document order, an
/// operation and its operand. `=` replaces the value by the JSON after it. `-` removes the element with the number after
/// it. `+` adds members, written as a JSON object, to an object, or any other JSON to an array. `*` repeats the last element
/// of an array.
pub fn document(bytes: &[u8], documents: &[Value]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    if text.starts_with('{') {
        return Some(text.into_owned());
    }
    let (&first, _) = bytes.split_first()?;
    let mut document = documents.get(usize::from(first) % documents.len())?.clone();
    for line in text.lines().skip(1) {
        change(&mut document, line);
    }
    Some(document.to_string())
}

fn change(document: &mut Value, line: &str) -> Option<()> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (position, rest) = line.split_at(digits);
    let mut position = position.parse::<usize>().ok()? % count(document);
    let value = nth(document, &mut position)?;
    let mut characters = rest.chars();
    let operation = characters.next()?;
    let operand = characters.as_str();
    match (operation, value) {
        ('=', value) => *value = serde_json::from_str(operand).ok()?,
        ('-', Value::Array(elements)) if !elements.is_empty() => {
            elements.remove(operand.parse::<usize>().ok()? % elements.len());
        }
        ('-', Value::Object(members)) if !members.is_empty() => {
            let position = operand.parse::<usize>().ok()? % members.len();
            let name = members.keys().nth(position)?.clone();
            members.remove(&name);
        }
        ('+', Value::Array(elements)) => elements.push(serde_json::from_str(operand).ok()?),
        ('+', Value::Object(members)) => {
            members.extend(serde_json::from_str::<serde_json::Map<_, _>>(operand).ok()?);
        }
        ('*', Value::Array(elements)) => {
            let last = elements.last()?.clone();
            let copies = operand.parse::<usize>().ok()?.min(COPIES_MAX);
            elements.resize(elements.len() + copies, last);
        }
        _ => {}
    }
    Some(())
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the value at this position in document order. Subtracts the values before it from the position.
fn nth<'a>(value: &'a mut Value, position: &mut usize) -> Option<&'a mut Value> {
    if *position == 0 {
        return Some(value);
    }
    *position -= 1;
    match value {
        Value::Array(elements) => elements.iter_mut().find_map(|element| nth(element, position)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, position)),
        _ => None,
    }
}
