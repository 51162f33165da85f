// Where every gradient lies in the flat buckets that data-parallel ranks reduce, and which part of a bucket each of
// them owns when it is shared out (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054; flat buckets as in Megatron-LM's
// distributed optimizer). Buckets are filled in reverse creation order, about the order in which backward produces
// gradients; the one that is summed over tp comes last.
//
// A shared-out bucket is padded until it splits into equal shards of whole cache lines, and each gradient starts on
// one: so a piece of a parameter that a rank updates begins where a vector of the whole parameter's update begins, and
// the optimizer's kernels give the same bits for pieces as for whole parameters. Parameters that several pipeline ranks
// hold have buckets of their own, in the order of their names: all holders cut them alike. Torch-free. Cost: a few
// additions a parameter. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace ranklab {

constexpr int64_t kBucketLineElements = 16;  // 64 bytes of fp32

// A parameter as the layout sees it.
struct BucketItem {
  std::string name;
  int64_t elements = 0;
  DType dtype = DType::kFloat32;
  bool sum_over_tp = false;
  std::vector<int> pipeline_ranks = {};  // that hold a copy, when there are several
  // ZeRO stage 3: what is gathered and freed together, in buckets of its own whatever their size; "": not gathered.
  std::string unit = {};
};

struct BucketPlace {
  size_t item = 0;
  int64_t offset = 0;  // elements
  int64_t elements = 0;
};

struct BucketLayout {
  std::vector<BucketPlace> places;
  int64_t elements = 0;  // with padding
  int64_t element_bytes = 4;
  bool sum_over_tp = false;
  std::string unit = {};

  int64_t bytes() const { return elements * element_bytes; }
  int64_t padding() const;  // elements
};

// `shards`: ranks that share out each bucket; 1: none do.
std::vector<BucketLayout> lay_out_buckets(const std::vector<BucketItem>& items, int64_t bucket_bytes, int shards);

// What a rank owns of one parameter: its elements [begin, end), which lie at `offset` of the rank's shard.
struct ShardPiece {
  size_t item = 0;
  int64_t begin = 0, end = 0;
  int64_t offset = 0;
  int64_t elements() const { return end - begin; }
};
std::vector<ShardPiece> pieces_of(const BucketLayout& bucket, int shards, int shard);

}  // namespace ranklab
