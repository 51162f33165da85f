#include "core/config/quantization_split.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/linear_modules.h"
#include "core/precision/precision_policy.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// One dimension that ranks shard: its fused parts, each split evenly into quantization blocks of `block` elements.
struct Cut {
  std::string module = {}, dimension = {};
  std::vector<int64_t> parts = {};
  int64_t block = 1;
  int64_t least = 1;  // every block size must be a multiple of this
  int ranks = 1;
  const char* ranks_flag = "--tp";
  std::string size_flag = {};  // the flag that makes the dimension longer
  bool padded = false;         // the dimension is padded to a multiple of the ranks (vocabularies)
};

int64_t block_of(const TensorPrecision& t) {
  const bool blocks = t.granularity == Granularity::kTile || t.granularity == Granularity::kBlock;
  return t.quantized() && blocks ? t.block : 1;
}

// True when the shard of each of `ranks` ranks consists of whole blocks.
bool fits(const Cut& cut, int ranks, int64_t block) {
  return ranks == 1 || std::ranges::all_of(cut.parts, [&](int64_t part) {
           const int64_t each = cut.padded ? (part + ranks - 1) / ranks : part / ranks;
           return (cut.padded || part % ranks == 0) && each % block == 0;
         });
}

std::vector<int64_t> parts_of(const ModuleRow& row) {
  return row.split == ModuleSplit::kRow ? std::vector<int64_t>{row.shape[1]} : row.parts;
}

std::string size_flag(const ModuleRow& row, const ModelConfig& c) {
  switch (row.part) {
    case ModulePart::kAttentionIn:
    case ModulePart::kAttentionOut:
    case ModulePart::kMambaIn:
    case ModulePart::kMambaOut:
      if (c.kv_channels > 0) return "--kv-channels";
      return c.mla.enabled() ? "--num-attention-heads" : "--hidden-size";
    case ModulePart::kSharedExperts:
      return "--moe-shared-expert-intermediate-size";
    case ModulePart::kExperts:
      return c.moe.ffn_hidden_size == 0 ? "--ffn-hidden-size" : "--moe-ffn-hidden-size";
    case ModulePart::kHead:
      return "--vocab-size";
    default:
      return "--ffn-hidden-size";
  }
}

// The dimension of a module's weight that tensor parallelism shards. GEMMs reduce over in features in the forward pass,
// over out features for the gradients of x, and over tokens for the gradients of W.
Cut weight_cut(const ModuleRow& row, const LinearPrecision& linear, const RunPlan& plan) {
  const ParallelDims& dims = plan.config.parallel;
  const bool in = row.split == ModuleSplit::kRow;
  Cut cut{.dimension = in ? "in features" : "out features",
          .parts = parts_of(row),
          .block = std::lcm(block_of(linear.weight), block_of(in ? linear.activation : linear.gradient)),
          .ranks = row.is_expert() ? dims.etp : dims.tp,
          .ranks_flag = row.is_expert() ? "--etp" : "--tp",
          .size_flag = size_flag(row, plan.config.model),
          .padded = row.split == ModuleSplit::kVocabulary};
  return cut;
}

// With sequence parallelism, the GEMM of a replicated weight sees only this rank's tokens.
Cut token_cut(const LinearPrecision& linear, const RunPlan& plan) {
  constexpr int64_t kHadamard = 16;
  const int64_t least = linear.hadamard ? kHadamard : 1;
  return {.dimension = "tokens of a microbatch",
          .parts = {plan.micro_batch_size * plan.config.model.seq_length},
          .block = std::lcm(std::lcm(block_of(linear.activation), block_of(linear.gradient)), least),
          .least = least,
          .ranks = plan.sequence_parallel ? plan.config.parallel.tp : 1,
          .size_flag = "--micro-batch-size"};
}

// With context parallelism every GEMM sees only this rank's runs of neighbouring tokens: one run, or two with a zigzag;
// with stripes each run is a single position.
Cut context_cut(const LinearPrecision& linear, const RunPlan& plan) {
  const int cp = plan.config.parallel.cp;
  const SequenceBalance balance = plan.config.context_split.balance;
  Cut cut = token_cut(linear, plan);
  cut.ranks = cp;
  cut.ranks_flag = "--cp";
  if (balance == SequenceBalance::kZigzag) {
    cut.dimension = "tokens of half a microbatch";
    cut.parts[0] /= 2;
  } else if (balance == SequenceBalance::kStripe) {
    cut.dimension = "tokens of a stripe's neighbours";
    cut.parts[0] = cp * plan.micro_batch_size;
  }
  return cut;
}

std::vector<Cut> cuts_of(const RunPlan& plan) {
  std::vector<Cut> cuts;
  for (const ModuleRow& row : module_table(plan.config.model)) {
    if (!row.multiplies) continue;
    for (const PolicyModule& module : modules_of(row)) {
      const ModulePrecision* precision = plan.precision->find(module.name);
      if (precision == nullptr || !precision->linear.quantized()) continue;
      cuts.push_back(row.split == ModuleSplit::kReplicated ? token_cut(precision->linear, plan)
                                                           : weight_cut(row, precision->linear, plan));
      cuts.back().module = module.name;
      if (plan.config.parallel.cp > 1 && !row.is_expert()) {
        cuts.push_back(context_cut(precision->linear, plan));
        cuts.back().module = module.name;
      }
      break;  // all modules of one kind are split alike
    }
  }
  return cuts;
}

// Largest value not above `start` with which all cuts fit; 0: none.
template <typename Fits>
int64_t largest_below(int64_t start, const Fits& all_fit) {
  for (int64_t value = start; value > 0; --value) {
    if (all_fit(value)) return value;
  }
  return 0;
}

int64_t legal_ranks(const std::vector<Cut>& cuts, const Cut& bad) {
  return largest_below(bad.ranks, [&](int64_t ranks) {
    return bad.ranks % ranks == 0 && std::ranges::all_of(cuts, [&](const Cut& cut) {
             return std::string_view(cut.ranks_flag) != bad.ranks_flag || fits(cut, static_cast<int>(ranks), cut.block);
           });
  });
}

// --quantization-block-size sets one size for all blocks.
int64_t legal_block(const std::vector<Cut>& cuts, const Cut& bad) {
  const int64_t most = *std::ranges::max_element(bad.parts);
  return largest_below(std::min(bad.block, most), [&](int64_t block) {
    return bad.block % block == 0 && std::ranges::all_of(cuts, [&](const Cut& cut) {
             return fits(cut, cut.ranks, cut.block == 1 ? 1 : std::lcm(block, cut.least));
           });
  });
}

[[noreturn]] void refuse(const std::vector<Cut>& cuts, const Cut& bad) {
  const int64_t shortest = *std::ranges::min_element(bad.parts);
  const int64_t multiple = bad.ranks * bad.block;
  std::string fix = strprintf("use %s %ld", bad.ranks_flag, static_cast<long>(legal_ranks(cuts, bad)));
  if (const int64_t block = legal_block(cuts, bad); block > 0)
    fix += " or --quantization-block-size " + std::to_string(block);
  fix += ", or raise " + bad.size_flag;
  throw Error(
      ErrorKind::kInvalidArgument,
      {.where = "precision",
       .what = "numbers that share a scale would be on two ranks, and differ from what one rank computes",
       .got = strprintf("%s: %s %s over %s %d, blocks of %ld", quote(bad.module).c_str(), bad.dimension.c_str(),
                        join(bad.parts, " + ").c_str(), bad.ranks_flag, bad.ranks, static_cast<long>(bad.block)),
       .want = strprintf("%s in multiples of %ld x %d, as in %ld", bad.parts.size() > 1 ? "each part" : "a length",
                         static_cast<long>(bad.block), bad.ranks,
                         static_cast<long>((shortest + multiple - 1) / multiple * multiple)),
       .fix = fix});
}

}  // namespace

void check_quantization_split(const RunPlan& plan) {
  if (plan.precision == nullptr) return;
  const std::vector<Cut> cuts = cuts_of(plan);
  for (const Cut& cut : cuts) {
    if (!fits(cut, cut.ranks, cut.block)) refuse(cuts, cut);
  }
}

}  // namespace ranklab
