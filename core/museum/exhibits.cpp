#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/museum/exhibit.h"
#include "core/museum/exhibits/exhibits.h"
#include "core/museum/hunt.h"

namespace ranklab {
namespace {

// In the order in which a training step would meet them.
constexpr const Exhibit* kExhibits[] = {
    // weights and data
    &museum::init_per_shard,
    &museum::replica_init,
    &museum::sampler_seed_per_rank,
    &museum::resume_without_sampler,
    // forward
    &museum::scatter_wrong_group,
    &museum::dropout_seed_per_rank,
    &museum::dropout_mask_repeated,
    &museum::rope_local_positions,
    &museum::capacity_local,
    &museum::empty_expert_skips,
    &museum::vocab_padding,
    // backward
    &museum::mean_of_means,
    &museum::mtp_loss_over_cp,
    &museum::cp_attention_gradient,
    &museum::kv_heads_unreduced,
    &museum::gather_backward_slices,
    &museum::grad_buffer_stale,
    &museum::bf16_accumulation,
    // reductions
    &museum::norm_unreduced,
    &museum::norm_averaged,
    &museum::output_norm_partial,
    &museum::dense_over_edp,
    &museum::expert_grad_times_ep,
    &museum::last_microbatch_local,
    &museum::last_stage_unsynced,
    &museum::tied_embedding_unsynced,
    &museum::dualpipe_unmerged,
    // the norm and the update
    &museum::experts_missing_from_norm,
    &museum::norm_per_ep_group,
    &museum::clip_first_tp_rank_only,
    &museum::loss_scale_unsynced,
    &museum::bf16_no_master,
    &museum::zero_padding,
    &museum::stale_gather,
    &museum::bias_local_load,
};

constexpr auto kKinds =
    std::to_array<std::string_view>({"missing sum", "wrong scale", "wrong group", "wrong place", "stale",
                                     "not synchronized", "wrong random numbers", "too few bits", "lost state", "hang"});
static_assert(kKinds.size() == static_cast<size_t>(BugKind::kCount));

// The number in a hunt's name: 7 for "hunt-7".
std::optional<int> number_of_hunt(const std::string& name) {
  constexpr std::string_view kBegin = "hunt-";
  int number = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(kBegin) || std::from_chars(name.data() + kBegin.size(), end, number).ptr != end) return {};
  return number;
}

}  // namespace

std::string_view name(BugKind kind) { return kKinds.at(static_cast<size_t>(kind)); }

std::span<const Exhibit* const> exhibits() { return kExhibits; }

const Exhibit* find_exhibit(std::string_view name) {
  const auto* const found = std::ranges::find(kExhibits, name, &Exhibit::name);
  return found == std::end(kExhibits) ? nullptr : *found;
}

const Exhibit& exhibit_named(const std::string& name) {
  if (const Exhibit* exhibit = find_exhibit(name)) return *exhibit;
  std::vector<std::string> known;
  for (const Exhibit* exhibit : kExhibits) known.emplace_back(exhibit->name);
  throw unknown_name(name, known,
                     {.where = "museum",
                      .what = "the museum has no such bug",
                      .want = "a name of `ranklab museum list`",
                      .fix = "choose one of them"});
}

std::vector<InjectedBug> bugs_named(const std::string& names) {
  std::vector<InjectedBug> bugs;
  if (names.empty()) return bugs;
  for (const std::string& name : split(names, ',')) {
    const std::optional<int> hunt = number_of_hunt(name);
    bugs.push_back(hunt ? hunt_numbered(*hunt).exhibit->bug : exhibit_named(name).bug);
  }
  return bugs;
}

}  // namespace ranklab
