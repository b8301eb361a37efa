//! Pages to look things up in, and the schema for editors: each is made from what the program itself says.
//! `STINT_UPDATE=1 cargo test --test it -- reference` writes the pages anew.

mod errors;
mod schema;
mod settings;

/// A text in lines of at most 138 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + word.chars().count() > 137 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// A text as a cell of a table has it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
