//! A real llama.cpp server behind the gateway, with the embedded model's own file.
