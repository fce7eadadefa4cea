"""Makes a model of 0.1 MB for llama.cpp's server: whatever it is told, it says one text, and ends.

    python3 tiny_model.py FILE TEXT        with Debian's python3-gguf

Its one layer does nothing, so the next token depends on the last one alone: after any other comes the text, which
is a token of its own, and after that the end.
"""
import sys
import gguf
import numpy as np

path, text = sys.argv[1:]
WIDTH, END = 32, 2
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + [text]
kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] \
    + [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.USER_DEFINED]
SAYS = len(tokens) - 1

w = gguf.GGUFWriter(path, "llama")
w.add_name("tiny")
w.add_context_length(16384)
w.add_embedding_length(WIDTH)
w.add_block_count(1)
w.add_feed_forward_length(WIDTH)
w.add_head_count(1)
w.add_head_count_kv(1)
w.add_layer_norm_rms_eps(1e-5)
w.add_rope_dimension_count(WIDTH)
w.add_vocab_size(len(tokens))
w.add_tokenizer_model("llama")
w.add_token_list(tokens)
w.add_token_scores([0.0] * len(tokens))
w.add_token_types(kinds)
w.add_bos_token_id(1)
w.add_eos_token_id(END)
w.add_add_space_prefix(False)
w.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")

embedding = np.zeros((len(tokens), WIDTH), np.float32)
embedding[:, 0] = 1
embedding[SAYS] = 0
embedding[SAYS, 1] = 1
output = np.zeros((len(tokens), WIDTH), np.float32)
output[SAYS, 0] = 10
output[END, 1] = 10
square = np.zeros((WIDTH, WIDTH), np.float32)
ones = np.ones(WIDTH, np.float32)
w.add_tensor("token_embd.weight", embedding)
w.add_tensor("output_norm.weight", ones)
w.add_tensor("output.weight", output)
for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
    w.add_tensor(f"blk.0.{name}.weight", square)
for name in ("attn_norm", "ffn_norm"):
    w.add_tensor(f"blk.0.{name}.weight", ones)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
