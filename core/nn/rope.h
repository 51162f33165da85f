// Rotary position embedding (Su et al. 2021, arXiv 2104.09864) in the halves convention of GPT-NeoX and Llama: the pair
// (x[i], x[i + D/2]) turns by position * theta^(-2i/D). Where only a share of the head carries position (GPT-NeoX,
// "partial rotary"), its first pairs turn, by the frequencies of a head as wide as that share, and the others stay:
// their cosine is 1, their sine 0. Tables are made once per model, in fp64, then rounded. Thread rule: tables are
// immutable.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

namespace ranklab {

class RopeLengths;

struct RopeTable {
  at::Tensor cos_SD;  // [S, D/2]; undefined: no rotation
  at::Tensor sin_SD;
  std::shared_ptr<RopeLengths> lengths = {};  // null: the angles are the same whatever the length of a sequence
  bool defined() const { return cos_SD.defined(); }
};

// Where the frequencies follow the length of the sequence: a table for each. Thread rule: its rank's thread.
class RopeLengths {
 public:
  virtual ~RopeLengths() = default;
  virtual RopeTable of(int64_t seq_length) = 0;
};

// The table that turns sequences of this length, at most the longest: `table` itself, if it does not follow the length.
RopeTable rope_for(const RopeTable& table, int64_t seq_length);

// theta^(-2i/D): [D/2] in fp64. REQUIRES: head_dim even.
at::Tensor rope_frequencies(int64_t head_dim, double theta);
// What turns by how much.
struct RopeShape {
  int64_t turned = 0;  // elements of a head that carry position
  int64_t still = 0;   // ... that do not
  double theta = 10000.0;
};
// Of frequencies [turned / 2]; both tables of those pairs times `scale`.
RopeTable make_rope_table(int64_t seq_length, const at::Tensor& frequencies, int64_t still, double scale,
                          const at::TensorOptions& options);
// REQUIRES: head_dim even.
RopeTable make_rope_table(int64_t seq_length, int64_t head_dim, double theta, const at::TensorOptions& options);
// x [..., S, D], S at most the table's length: rotated by position 0 .. S-1. Plain ATen ops.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

}  // namespace ranklab
