//! The Helm chart: Helm itself makes its objects, Kubernetes' own schemas take them, and they have no right that Stint does not use.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::Folder;
use crate::harness::tools::{printed, tool};

const CHART: &str = "deploy/helm/stint";
const SHARED: &str = "config: |\n  [server]\n  metrics_listen = \"0.0.0.0:9090\"\n  [keys]\n  required = true\n  [ledger]\n  \
                      url_env = \"STINT_LEDGER_URL\"\npostgresql: { existingSecret: database }\nreplicas: 3\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn helm(arguments: &[&str]) -> Output {
    let program = root().join(".cache/helm");
    assert!(program.exists(), "{} is missing: run `make test-tools`", program.display());
    // It has no plugins, and no cluster.
    let nowhere = root().join("target/no-helm");
    let mut command = Command::new(program);
    command.current_dir(root()).env("KUBECONFIG", "/dev/null");
    for name in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        command.env(name, &nowhere);
    }
    command.args(arguments).output().unwrap()
}

/// The objects of the chart with these values; or what Helm says against them.
fn rendered(values: &str) -> Result<(String, Vec<Value>), String> {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    let file = file.to_str().unwrap();
    let lint = helm(&["lint", "--strict", CHART, "--values", file]);
    let made = helm(&["template", "t", CHART, "--values", file]);
    if !made.status.success() {
        return Err(String::from_utf8(made.stderr).unwrap());
    }
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    let yaml = String::from_utf8(made.stdout).unwrap();
    let program =
        "import json, sys, yaml; print(json.dumps([one for one in yaml.safe_load_all(sys.stdin) if one]))";
    let mut python = tool("../kubernetes/bin/python");
    let objects = printed(python.args(["-c", program]), &yaml);
    Ok((yaml, serde_json::from_str(&objects).unwrap()))
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Vec<&'o Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// Kubernetes' schemas of an old and of the newest version take all objects that are its own.
fn check_schemas(objects: &[Value]) {
    let folder = tempfile::TempDir::new().unwrap();
    for (number, object) in objects.iter().filter(|object| object["kind"] != "ServiceMonitor").enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(&file, object.to_string()).unwrap();
    }
    let files: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    for version in ["1.27", "1.37"] {
        let mut validate = tool("../kubernetes/bin/kubernetes-validate");
        let said = validate.args(["--strict", "-k", version]).args(&files).output().unwrap();
        assert!(said.status.success(), "{version}: {}", String::from_utf8_lossy(&said.stdout));
    }
}

/// The one container has no right that it does not use, and is looked at.
fn check_hardened(deployment: &Value) {
    let pod = &deployment["spec"]["template"]["spec"];
    let expected = json!({
        "runAsNonRoot": true, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": { "type": "RuntimeDefault" },
    });
    assert_eq!(pod["securityContext"], expected);
    assert_eq!(pod["automountServiceAccountToken"], false);
    let [container] = &pod["containers"].as_array().unwrap()[..] else { panic!("{pod}") };
    let expected = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(container["securityContext"], expected);
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "metrics", "{probe}");
    }
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    // What the image says of itself in another place.
    let image = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(image.contains("USER 10001:10001") && image.contains("STINT_CONFIG=/etc/stint/stint.toml"));
    assert!(image.contains("STINT_LISTEN=0.0.0.0:8080") && image.contains("XDG_DATA_HOME=/var/lib"));
}

/// The configuration is one that the gateway takes, listening as the image has it listen.
fn check_configuration(objects: &[Value]) {
    let toml = of_kind(objects, "ConfigMap")[0]["data"]["stint.toml"].as_str().unwrap().to_owned();
    let folder = Folder::new(&toml);
    let mut check = folder.stint("check");
    check.env("STINT_LISTEN", "0.0.0.0:8080").env("STINT_FIRST_KEY", "");
    if toml.contains("STINT_LEDGER_URL") {
        check.env_remove("STINT_LEDGER").env("STINT_LEDGER_URL", "postgres://127.0.0.1:1/none");
    }
    let output = check.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// SC-10: the container has no right that it does not use.
#[test]
fn one_gateway_keeps_its_books_on_a_volume() {
    let (_, objects) = rendered("{}").unwrap();
    check_schemas(&objects);
    check_configuration(&objects);
    let deployment = of_kind(&objects, "Deployment")[0];
    check_hardened(deployment);
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    let claim = of_kind(&objects, "PersistentVolumeClaim")[0];
    assert_eq!(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    assert!(
        of_kind(&objects, "PodDisruptionBudget").is_empty() && of_kind(&objects, "ServiceMonitor").is_empty()
    );
}

#[test]
fn several_gateways_share_a_database_whose_address_is_in_a_secret() {
    let more = "existingSecret: upstreams\nserviceMonitor: { enabled: true, labels: { release: p } }\n\
                imagePullSecrets: [{ name: r }]\nnodeSelector: { a: b }\ntolerations: [{ operator: Exists }]\n\
                podAnnotations: { c: d }\naffinity: { nodeAffinity: {} }\n";
    let (yaml, objects) = rendered(&format!("{SHARED}{more}")).unwrap();
    check_schemas(&objects);
    check_configuration(&objects);
    let deployment = of_kind(&objects, "Deployment")[0];
    check_hardened(deployment);
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["spec"]["strategy"]["type"]),
        (&json!(3), &json!("RollingUpdate"))
    );
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let address = json!({ "name": "STINT_LEDGER_URL", "valueFrom": { "secretKeyRef": { "name": "database", "key": "url" } } });
    assert!(container["env"].as_array().unwrap().contains(&address));
    assert_eq!(container["envFrom"], json!([{ "secretRef": { "name": "upstreams" } }]));
    assert!(of_kind(&objects, "PersistentVolumeClaim").is_empty() && of_kind(&objects, "Secret").is_empty());
    assert_eq!(of_kind(&objects, "PodDisruptionBudget")[0]["spec"]["maxUnavailable"], 1);
    // What it selects is the pods, and what the monitor selects is the service of the metrics.
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], *labels);
    let monitor = of_kind(&objects, "ServiceMonitor")[0];
    let watched = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    let is_watched =
        |service: &&&Value| watched.iter().all(|(name, value)| service["metadata"]["labels"][name] == *value);
    let services = of_kind(&objects, "Service");
    let found: Vec<_> =
        services.iter().filter(is_watched).map(|service| &service["spec"]["ports"][0]["name"]).collect();
    assert_eq!(found, [&json!("metrics")]);
    assert!(!yaml.contains("postgres://"));
}

#[test]
fn values_that_cannot_work_are_refused_with_the_remedy() {
    let refused = |values: &str, words: &str| {
        let said = rendered(values).map(|(yaml, _)| yaml).unwrap_err();
        assert!(said.contains(words), "{values}: {said}");
    };
    refused("replicas: 2", "needs PostgreSQL");
    refused("postgresql: { existingSecret: database }", "STINT_LEDGER_URL");
    refused("replicsa: 2", "replicsa");
    refused("replicas: 0", "replicas");
    refused("service: { port: web }", "port");
    assert!(Path::new(CHART).join("values.schema.json").exists());
}
