//! `stint probe`, against the embedded model and a real llama.cpp server.

mod providers;

use crate::harness::Folder;
use crate::harness::tools::{LlamaServer, printed};

const REASONER: &str = "models/reasoner.gguf";

/// The line of the table that begins with a word and has this budget.
fn verdict(table: &str, class: &str, budget: &str) -> String {
    let line = table.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(class) && words.next() == Some(budget)
    });
    line.unwrap_or_else(|| panic!("no {class} {budget} in {table}")).to_owned()
}

#[test]
fn the_embedded_model_holds_its_budgets_and_everything_is_known_of_it() {
    let folder = Folder::new("[catalog]\nlearned = \"learned.toml\"\n");
    let table = printed(folder.stint("probe").arg("reasoner"), "");
    assert!(verdict(&table, "inline", "24").ends_with("holds"), "{table}");
    assert!(verdict(&table, "inline", "0").ends_with("does not think"), "{table}");
    assert!(
        table.contains("\nholds: it thinks longer when left alone, kept to the budget here, and answered"),
        "{table}"
    );
    assert!(!folder.path().join("learned.toml").exists());
}

#[test]
fn a_local_model_is_probed_within_what_its_engine_has() {
    let reasoner = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(REASONER);
    let local = format!(
        "[engine]\nembedded = false\ncontext = 256\n[catalog]\nlearned = \"learned.toml\"\n[[backend]]\nkind = \"local\"\n\
         file = \"{}\"\n[[backend.model]]\nname = \"own\"\ncontext = 32768\nthinking_max = 8192\n",
        reasoner.display()
    );
    let table = printed(Folder::new(&local).stint("probe").args(["own", "--dry-run"]), "");
    assert!(verdict(&table, "inline", "24").ends_with("holds"), "{table}");
    assert!(!table.contains("refused") && !table.contains("failed"), "{table}");
}

#[test]
fn what_a_real_server_does_is_found_out_and_holds_from_then_on() {
    let server = LlamaServer::start(REASONER, &[]);
    let backend = format!("[[backend]]\nkind = \"llamacpp\"\nbase_url = \"{}\"\n", server.base);
    let model = "[[backend.model]]\nname = \"remote\"\ncontext = 512\nthinking_max = 256\nsolution_max = 64\n\
                 hand_off = \"\\n</think>\\n\\n\"\nprice_input = \"0.1\"\nprice_output = \"0.4\"\n";
    let folder = Folder::new(&format!("[catalog]\nlearned = \"learned.toml\"\n{backend}{model}"));
    let dry = printed(folder.stint("probe").args(["remote", "--dry-run"]), "");
    assert!(dry.contains("nothing was written") && !folder.path().join("learned.toml").exists(), "{dry}");
    let table = printed(folder.stint("probe").arg("remote"), "");
    assert!(verdict(&table, "continue", "24").ends_with("holds"), "{table}");
    assert!(verdict(&table, "continue", "0").ends_with("does not think"), "{table}");
    assert!(table.contains(" dollars"), "{table}");
    let learned = std::fs::read_to_string(folder.path().join("learned.toml")).unwrap();
    assert!(learned.contains("match = [\"remote\"]") && learned.contains("\"continue\""), "{learned}");
    printed(&mut folder.stint("check"), "");
    // Probed again, it is one entry still.
    printed(folder.stint("probe").arg("remote"), "");
    let again = std::fs::read_to_string(folder.path().join("learned.toml")).unwrap();
    assert_eq!(again.matches("[[model]]").count(), 1, "{again}");
}

#[test]
fn who_cannot_be_probed_is_told_why() {
    let folder = Folder::new(
        "[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"silent\"]\n\
         [[backend.model]]\nname = \"vectors\"\nserves = [\"embeddings\"]\n",
    );
    for (name, says) in [
        ("nobody", "there is no model \"nobody\""),
        ("silent", "answered no question at all"),
        (
            "vectors",
            "vectors is not asked for answers (serves = embeddings), so there is no thought to find out about",
        ),
    ] {
        let output = folder.stint("probe").arg(name).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(says), "{told}");
    }
}
