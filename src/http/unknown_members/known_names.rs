//! The names of members that servers have and that are not passed on as they are: what is left out, what is refused, and why.

/// What is taken and goes nowhere: where a server computes, what it keeps in memory and what it tells beside an answer are
/// the operator's business, and the gateway's own; and what some Copilots by mistake send to others than GitHub (`snippy`).
pub(super) const LEFT_OUT: &[&str] = &[
    "cache_prompt",
    "id_slot",
    "slot_id",
    "data_parallel_rank",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "extra_key",
    "session_id",
    "n_cache_reuse",
    "n_keep",
    "n_discard",
    "keep_alive",
    "num_ctx",
    "num_keep",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "numa",
    "low_vram",
    "f16_kv",
    "use_mmap",
    "use_mlock",
    "request_id",
    "rid",
    "route",
    "timings_per_token",
    "return_progress",
    "return_tokens",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "return_hidden_states",
    "return_routed_experts",
    "response_fields",
    "stream_interval",
    "snippy",
    "prediction",
    "prompt_cache_retention",
    "prompt_cache_options",
    "usage",
];

/// Beside the conversation nobody counts them, and nobody looks at where they are.
pub(super) const MEDIA: &str =
    "is not offered: send images and sound as parts of a message, which says what is in it";

/// What is refused unless it says nothing, each with what to do instead.
pub(super) const REFUSED: &[(&str, &str)] = &[
    (
        "extra_body",
        "is how SDKs take members that they do not know: send its contents beside model and messages",
    ),
    ("extra_headers", "is how SDKs take headers: send them as headers"),
    ("extra_query", "is how SDKs take a query: there is none here"),
    ("options", "is how Ollama's own API has it: send what is in it beside model and messages"),
    ("use_beam_search", "is not offered: several answers would be billed for one"),
    ("n_cmpl", "is not offered: several answers would be billed for one; n is how many are wanted"),
    (
        "num_return_sequences",
        "is not offered: several answers would be billed for one; n is how many are wanted",
    ),
    ("ignore_eos", "is not offered: an answer ends when the model ends it"),
    ("ban_eos_token", "is not offered: an answer ends when the model ends it"),
    ("auto_max_new_tokens", "is not offered: an answer has the limit that max_tokens states"),
    ("priority", "is the operator's to say; a request that can wait sends the header Priority: u=4"),
    ("plugins", "is not offered: nothing searches or reads files here; give the model a tool of yours"),
    ("web_search", "is not offered: nothing searches here; give the model a tool of yours"),
    ("enable_search", "is not offered: nothing searches here; give the model a tool of yours"),
    ("search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("search_parameters", "is not offered: nothing searches here; give the model a tool of yours"),
    (
        "provider",
        "is not offered: the operator says where models are served; ask for another model or a route",
    ),
    ("models", "is not offered: name one model, or a route, whose models take over from one another"),
    ("fallbacks", "is not offered: name a route, whose models take over from one another"),
    ("transforms", "is not offered: nothing is left out of what you send; shorten messages yourself"),
    (
        "truncate_prompt_tokens",
        "is not offered: nothing is left out of what you send; shorten messages yourself",
    ),
    ("background", "is not offered: an answer is only given to the call that waits for it; use stream"),
    ("deferred", "is not offered: an answer is only given to the call that waits for it; use stream"),
    ("prompt_logprobs", "is not offered: only the answer's tokens have logprobs here"),
    ("echo", "is not offered: the prompt is not sent back"),
    (
        "continue_final_message",
        "is for /v1/chat/completions; /v1/messages goes on with a last message of the assistant's by itself",
    ),
    ("kv_transfer_params", "is not offered: the operator says where a cache is"),
    ("ec_transfer_params", "is not offered: the operator says where a cache is"),
    ("disaggregated_params", "is not offered: the operator says where a cache is"),
    ("mm_processor_kwargs", "is not offered: the operator says how closely images are looked at"),
    ("media_io_kwargs", "is not offered: the operator says how closely images are looked at"),
    ("image", MEDIA),
    ("images", MEDIA),
    ("image_url", MEDIA),
    ("image_urls", MEDIA),
    ("image_data", MEDIA),
    ("audio_url", MEDIA),
    ("audio_data", MEDIA),
    ("video_url", MEDIA),
    ("video_data", MEDIA),
    ("videos", MEDIA),
    ("multi_modal_data", MEDIA),
    // With it some servers of embeddings take texts for addresses, and fetch them.
    ("modality", MEDIA),
    ("t_max_predict_ms", "is not known here; budget.deadline_ms says when the answer must be there"),
];

/// What chat completions take themselves, refused where another API has it unless it says nothing: raw in what is sent to a model it
/// would be billed and not bounded, or be asked for and not come back.
pub(super) const CHAT_ALONE: &[(&str, &str)] = &[
    ("n", "is for /v1/chat/completions: one answer is given here"),
    ("best_of", "is for /v1/completions: one answer is given here"),
    ("functions", "is not offered: it is the older name of tools; send those"),
    ("function_call", "is not offered: it is the older name of tool_choice; send that"),
    ("web_search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("audio", "is not offered: answers are text"),
    ("modalities", "may only be [\"text\"] here: answers are text"),
    ("moderation", "is not offered; leave it out"),
    ("store", "is not offered here: /v1/responses keeps answers"),
    ("stop", "is for /v1/chat/completions; /v1/messages has stop_sequences, /v1/responses has none"),
    (
        "response_format",
        "is for /v1/chat/completions; send output_config.format to /v1/messages, text.format to /v1/responses",
    ),
    (
        "logprobs",
        "is for /v1/chat/completions; /v1/responses has include: [\"message.output_text.logprobs\"]",
    ),
    ("top_logprobs", "is for /v1/chat/completions and /v1/responses"),
];

/// What must not go anywhere: addresses, credentials, files and code of the caller's; and what other APIs call the
/// conversation and what the gateway sets itself.
pub(super) const FORBIDDEN: &[&str] = &[
    "base_url",
    "api_base",
    "api_key",
    "api_version",
    "organization",
    "deployment_id",
    "custom_llm_provider",
    "user_config",
    "model_list",
    "litellm_params",
    "context_window_fallbacks",
    "content_policy_fallbacks",
    "num_retries",
    "input_cost_per_token",
    "output_cost_per_token",
    "headers",
    "webhook",
    "webhook_url",
    "callback_url",
    "file",
    "model_path",
    "mmproj",
    "lora",
    "lora_path",
    "lora_request",
    "adapters",
    "adapter_id",
    "adapter_source",
    "draft_model",
    "chat_template",
    "chat_template_str",
    "instruction_template",
    "instruction_template_str",
    "logits_processors",
    "logit_processors",
    "custom_logit_processor",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "session_params",
    "add_generation_prompt",
    "messages",
    "prompt",
    "prompt_embeds",
    "prompt_token_ids",
    "input",
    "input_ids",
    "input_embeds",
    "instructions",
    "system",
    "contents",
    "suffix",
    "prefix",
    "partial",
];

/// What fills a chat template.
const TEMPLATE: &str = "chat_template_kwargs";
/// What its renderer takes for options of its own: another template, and what is made of the text.
const TEMPLATE_OPTIONS: &[&str] = &[
    "chat_template",
    "conversation",
    "messages",
    "tools",
    "tokenize",
    "tokenizer_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "return_assistant_tokens_mask",
];

/// What vLLM hands to its engine beside the sampling, for plugins of the operator's.
const ENGINE_ARGUMENTS: &str = "vllm_xargs";
/// What its engine takes for orders to a cache there, wherever it comes from.
const CACHE_ORDERS: &[&str] = &["kv_transfer_params", "ec_transfer_params"];

/// What NVIDIA's Dynamo has there beside forms of answers.
const DYNAMO: &str = "nvext";
/// What of it is another prompt than the one that was counted, another tenant's cache, or where a server computes.
const DYNAMO_ORDERS: &[&str] = &[
    "use_raw_prompt",
    "token_data",
    "ignore_eos",
    "cache_salt",
    "session_control",
    "metadata_upload",
    "agent_hints",
    "backend_instance_id",
    "prefill_worker_id",
    "decode_worker_id",
    "dp_rank",
    "prefill_dp_rank",
];

/// What must not stand inside of members that are handed on, each with the member and why.
pub(super) const NESTED: [(&str, &[&str], &str); 3] = [
    (TEMPLATE, TEMPLATE_OPTIONS, "is no argument of a template, and not known here; leave it out"),
    (ENGINE_ARGUMENTS, CACHE_ORDERS, "is not offered: the operator says where a cache is"),
    (DYNAMO, DYNAMO_ORDERS, "is not offered: the operator says how and where a server computes"),
];

/// The members that speak of budgets: a slip in one of them would spend what was meant to be saved.
pub(super) const BUDGETS: [&str; 18] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "max_tool_calls",
    "n_predict",
    "num_predict",
    "reasoning_effort",
    "reasoning",
    "include_reasoning",
    "thinking",
    "thinking_token_budget",
    "thinking_budget",
    "thinking_budget_tokens",
    "enable_thinking",
    "budget",
    "metadata",
    "service_tier",
];

/// Members of our own object that stand beside it.
pub(super) const MISPLACED_MEMBERS: [(&str, &str); 4] = [
    ("thinking_tokens", "budget.thinking_tokens"),
    ("solution_tokens", "budget.solution_tokens"),
    ("cost_usd", "budget.cost_usd"),
    ("deadline_ms", "budget.deadline_ms"),
];
