"""QK-clip in plain PyTorch, for hf_training.py: the largest input of attention's softmax of each head, and what a step
does with it to the weights of transformers' models (Kimi K2, arXiv 2507.20534, section 2.1)."""
import torch


class Logits:
    """Within it every softmax over scores [B, heads, queries, keys] is seen: layer after layer, forward after forward."""

    def __init__(self, layers):
        self.layers, self.calls, self.largest = layers, 0, [float("-inf")] * layers

    def __enter__(self):
        self.softmax = torch.nn.functional.softmax
        torch.nn.functional.softmax = self.seen
        return self

    def __exit__(self, *_):
        torch.nn.functional.softmax = self.softmax

    def seen(self, scores, *rest, **named):
        if scores.dim() == 4:
            layer = self.calls % self.layers
            of_heads = scores.detach().amax((0, 2, 3))
            self.largest[layer] = torch.maximum(of_heads, torch.as_tensor(self.largest[layer]))
            self.calls += 1
        return self.softmax(scores, *rest, **named)


def scaled(linear, factors):
    """Rows of a projection, of its bias too."""
    linear.weight *= factors.unsqueeze(1)
    if linear.bias is not None:
        linear.bias *= factors


def clip(model, logits, threshold, alpha):
    """Returns how many heads were scaled."""
    config, clipped = model.config, 0
    for layer, largest in zip(model.model.layers, logits.largest):
        attention, heads = layer.self_attn, len(largest)
        together = heads if hasattr(attention, "q_norm") else heads // getattr(config, "num_key_value_heads", heads)
        latent = hasattr(attention, "kv_b_proj")
        if latent:
            together = 1
        gamma = (threshold / largest.view(-1, together).amax(1)).clamp(max=1).repeat_interleave(together)
        clipped += int((gamma < 1).sum())
        with torch.no_grad():
            if latent:
                nope, rope, v = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
                parts = lambda first, second, width: torch.cat([first.unsqueeze(1).expand(heads, nope), second.unsqueeze(1).expand(heads, width)], 1).flatten()
                scaled(attention.q_b_proj if hasattr(attention, "q_b_proj") else attention.q_proj, parts(gamma ** alpha, gamma, rope))
                scaled(attention.kv_b_proj, parts(gamma ** (1 - alpha), torch.ones(heads), v))
            elif hasattr(attention, "q_norm"):
                attention.q_norm.weight *= gamma[0] ** alpha
                attention.k_norm.weight *= gamma[0] ** (1 - alpha)
            else:
                width = attention.head_dim
                scaled(attention.q_proj, (gamma ** alpha).repeat_interleave(width))
                scaled(attention.k_proj, (gamma[::together] ** (1 - alpha)).repeat_interleave(width))
    return clipped
