// What context-parallel ranks send each other of keys and values: either these themselves, or tensors from which every
// rank computes them (in latent attention, a latent that all heads share and a rotary key, DeepSeek-V2, arXiv
// 2405.04434, so that a message does not grow with the number of heads). Computing them costs the projection once more
// on every rank that attends to them, and again in backward, because only the received tensors are saved. Thread rule:
// its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ranklab {

// Keys and values, or the two tensors that are sent in their place, or the gradients of either.
struct KeyValue {
  at::Tensor k, v;

  at::Tensor packed() const;  // one flat message
  // Views of `flat` with the shapes of `like`.
  static KeyValue unpacked(const at::Tensor& flat, const KeyValue& like);
  KeyValue wide_zeros() const;  // of the same sizes, in the type of sums
  KeyValue wide() const;
};

at::Tensor wide_zeros(const at::Tensor& like);  // in the type of sums

// How keys and values are computed from what ranks send.
struct KeyMaker {
  // Maps the tensors that came from a rank to the keys and values of its positions, [B, heads, S, D] each.
  // Differentiable; called again in backward. Empty: keys and values themselves are sent.
  std::function<KeyValue(const KeyValue& travelled, int of_rank)> make = {};
  std::vector<at::Tensor> weights = {};  // the leaves (weights) that make() uses

  bool makes() const { return make != nullptr; }
};

// The keys and values of one rank's positions, for as long as queries attend to them.
class ArrivedKeys {
 public:
  enum class For { kForward, kBackward };
  ArrivedKeys(const KeyMaker& maker, const KeyValue& travelled, int of_rank, For pass);
  const KeyValue& heads() const { return heads_; }
  // `d`: gradients of heads(). RETURNS: the gradients of the received tensors, in the type of sums. Adds the gradients
  // of the weights to `weight_grads`, which is empty or has one entry per weight; entries stay undefined where weight
  // gradients are deferred. REQUIRES: kBackward.
  KeyValue grads(const KeyValue& d, std::vector<at::Tensor>& weight_grads) const;

 private:
  const KeyMaker& maker_;
  KeyValue travelled_, heads_;
};

}  // namespace ranklab
