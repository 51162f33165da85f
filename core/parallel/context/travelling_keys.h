// What of keys and values travels between context-parallel ranks: themselves, or what every rank makes them of (latent
// attention: a latent of all heads and a rotary key, DeepSeek-V2, arXiv 2405.04434, so that a message does not grow
// with the heads). Making them costs the projection once more per rank that attends to them, and in backward again,
// where nothing but what travelled was saved. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ranklab {

// Keys and values, or two tensors that travel in their place, or the gradients of either.
struct KeyValue {
  at::Tensor k, v;

  at::Tensor packed() const;  // one flat message
  // As `like` is shaped; views.
  static KeyValue unpacked(const at::Tensor& flat, const KeyValue& like);
  KeyValue wide_zeros() const;  // of the same sizes, in the type of sums
  KeyValue wide() const;
};

at::Tensor wide_zeros(const at::Tensor& like);  // in the type of sums

// How keys and values are made of what travels.
struct KeyMaker {
  // What came from a rank -> keys and values of its positions, [B, heads, S, D] each. Differentiable; called again in
  // backward. Empty: keys and values travel themselves.
  std::function<KeyValue(const KeyValue& travelled, int of_rank)> make = {};
  std::vector<at::Tensor> weights = {};  // leaves that make() multiplies by

  bool makes() const { return make != nullptr; }
};

// Keys and values of one rank's positions while queries attend to them.
class ArrivedKeys {
 public:
  enum class For { kForward, kBackward };
  ArrivedKeys(const KeyMaker& maker, const KeyValue& travelled, int of_rank, For pass);
  const KeyValue& heads() const { return heads_; }
  // `d`: gradients of heads(). RETURNS: those of what travelled, in the type of sums. Adds the weights' to
  // `weight_grads`, which is empty or has one for each; they stay undefined where weight gradients are deferred.
  // REQUIRES: kBackward.
  KeyValue grads(const KeyValue& d, std::vector<at::Tensor>& weight_grads) const;

 private:
  const KeyMaker& maker_;
  KeyValue travelled_, heads_;
};

}  // namespace ranklab
