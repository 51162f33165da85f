// Sections from the trace about what ranks hold and in which formats they compute: memory, shards, experts, number
// formats.
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/pictures.h"
#include "viz/html/report/sections.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

constexpr size_t kListedRanks = 32, kListedTensors = 40, kListedBuckets = 40, kListedLayers = 64;

std::string left_out(size_t all, size_t listed, const char* what) {
  return all > listed ? paragraph(strprintf("And %zu more %s.", all - listed, what), "dim") : "";
}

HtmlTable memory_rows(const std::vector<RankMemory>& memory) {
  HtmlTable table{.head = {"rank", "peak", "in step"}};
  for (size_t c = 0; c < kMemoryCategories; ++c) table.head.emplace_back(name(static_cast<MemoryCategory>(c)));
  table.head.emplace_back("of the device");
  for (const RankMemory& rank : memory) {
    std::vector<std::string> row = {"r" + std::to_string(rank.global_rank), bytes_text(rank.peak.total()),
                                    rank.peak.step < 0 ? "-" : std::to_string(rank.peak.step)};
    for (const double bytes : rank.peak.bytes) row.push_back(bytes_text(bytes));
    row.push_back(rank.limit_bytes > 0 ? strprintf("%.3g %%", 100 * rank.share_of_limit()) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

HtmlTable bucket_rows(const ZeroTable& zero) {
  HtmlTable table{.head = {"bucket", "elements", "padding", "parts", "elements of a part"}};
  for (size_t b = 0; b < std::min(zero.rows.size(), kListedBuckets); ++b) {
    const ZeroBucketRow& row = zero.rows[b];
    table.rows.push_back({row.label, std::to_string(row.elements), std::to_string(row.padding),
                          std::to_string(row.shards), std::to_string(row.elements / std::max(row.shards, 1))});
  }
  return table;
}

HtmlTable stage_rows(const ZeroTable& zero) {
  HtmlTable table{.head = {"ZeRO stage", "parameters", "gradients", "optimizer", "together"}};
  for (int stage = 0; stage <= 3; ++stage) {
    const ZeroBytes bytes = zero.bytes_of_stage(0, stage);
    table.rows.push_back(
        {std::to_string(stage) + (stage == zero.stage ? ", this run" : ""),
         bytes_text(static_cast<double>(bytes.parameters)), bytes_text(static_cast<double>(bytes.gradients)),
         bytes_text(static_cast<double>(bytes.optimizer)), bytes_text(static_cast<double>(bytes.together()))});
  }
  return table;
}

HtmlTable expert_rows(const ExpertTable& experts) {
  HtmlTable table{
      .head = {"layer", "tokens", "most / even", "least / even", "deviation / mean", "dropped", "without a token"},
      .last_words = 1};
  for (size_t i = 0; i < std::min(experts.totals.size(), kListedLayers); ++i) {
    const LayerLoad& layer = experts.totals[i];
    const LoadMeasures& m = layer.measures;
    table.rows.push_back({std::to_string(layer.layer), strprintf("%.0f", m.sum), strprintf("%.2f", m.max_ratio),
                          strprintf("%.2f", m.ratio(m.min)), strprintf("%.2f", m.cv), strprintf("%.0f", layer.dropped),
                          m.dead.empty() ? "none" : "experts " + name_experts(m.dead)});
  }
  return table;
}

struct SampledTensor {
  const TensorSeries* series = nullptr;
  const TensorSample* sample = nullptr;
};

// The tensors of the last sampled step, those with the most noise first.
std::vector<SampledTensor> sampled(const PrecisionTable& precision) {
  std::vector<SampledTensor> out;
  const int step = precision.steps.empty() ? -1 : precision.steps.back();
  for (const TensorSeries& series : precision.tensors)
    if (const TensorSample* sample = series.at(step)) out.push_back({&series, sample});
  std::stable_sort(out.begin(), out.end(), [](const SampledTensor& a, const SampledTensor& b) {
    const double left = a.sample->sqnr_db(), right = b.sample->sqnr_db();
    return (std::isnan(left) ? -1e300 : left) < (std::isnan(right) ? -1e300 : right);
  });
  return out;
}

HtmlTable precision_rows(const std::vector<SampledTensor>& tensors) {
  HtmlTable table{.head = {"module", "tensor", "format", "numbers of a scale", "signal to noise", "became zero",
                           "above the largest", "largest"},
                  .words = 4};
  for (size_t i = 0; i < std::min(tensors.size(), kListedTensors); ++i) {
    const TensorSample& sample = *tensors[i].sample;
    const double sqnr = sample.sqnr_db();
    table.rows.push_back({tensors[i].series->module,
                          std::string(kTensorRoles[static_cast<size_t>(tensors[i].series->role)]), sample.format_text(),
                          sample.groups_text(), std::isfinite(sqnr) ? strprintf("%.1f dB", sqnr) : "no noise",
                          format_percent(sample.underflow_share()), format_percent(sample.saturated_share()),
                          strprintf("%.3g", sample.amax)});
  }
  return table;
}

}  // namespace

std::string memory_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore&, const StepFacts& facts, const std::string& letter) {
    if (!has_memory(facts.memory)) return absent("The trace has no memory counters: those of ranklab train have them.");
    std::vector<RankMemory> shown;
    for (const size_t r : telling_ranks(facts.mesh, kListedRanks)) shown.push_back(facts.memory[r]);
    return figure(memory_svg(shown, {true, letter + "h", "memory by category and rank"}),
                  "Each rank at its peak in the traced steps.") +
           table_markup(memory_rows(shown)) +
           (shown.size() < facts.memory.size() ? paragraph(strprintf("%zu of %zu ranks, which represent the others.",
                                                                     shown.size(), facts.memory.size()),
                                                           "dim")
                                               : "");
  });
}

std::string zero_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore&, const StepFacts& facts, const std::string& letter) {
    const ZeroTable& zero = facts.zero;
    if (zero.empty())
      return absent("The trace has no buckets of gradients: one data-parallel rank reduces none (--dp).");
    const bool sharded =
        std::any_of(zero.rows.begin(), zero.rows.end(), [](const ZeroBucketRow& row) { return row.shards > 1; });
    std::string out =
        paragraph(zero.stage == 0 || !sharded
                      ? "Stage " + std::to_string(zero.stage) +
                            ": every data-parallel rank holds all of what it updates. --zero-stage 1, 2 or 3 shards it."
                      : strprintf("Stage %d: data-parallel ranks shard %s.", zero.stage,
                                  zero.stage == 1   ? "the optimizer's states"
                                  : zero.stage == 2 ? "the optimizer's states and the gradients"
                                                    : "the optimizer's states, the gradients and the parameters"));
    if (zero.stage > 0 && sharded)
      out += figure(zero_svg(zero, facts.mesh, {true, letter + "z", "which part of each bucket a rank updates"}),
                    "Which part of a bucket each rank updates: 2/8 is the second of eight.");
    out += paragraph("What the first rank would hold at its update, at each stage:") + table_markup(stage_rows(zero));
    return out +
           folded("buckets", table_markup(bucket_rows(zero)) + left_out(zero.rows.size(), kListedBuckets, "buckets"));
  });
}

std::string expert_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore&, const StepFacts& facts, const std::string& letter) {
    const ExpertTable& experts = facts.experts;
    if (experts.empty())
      return absent("The trace has no routing: the model has no experts (--num-experts gives it some).");
    return figure(expert_svg(experts, {true, letter + "x", "load of experts by layer"}),
                  "Tokens of each expert in the traced steps, to an even load of 1; red got none.") +
           table_markup(expert_rows(experts)) + left_out(experts.totals.size(), kListedLayers, "layers");
  });
}

std::string precision_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore&, const StepFacts& facts, const std::string&) {
    const std::vector<SampledTensor> tensors = sampled(facts.precision);
    if (tensors.empty())
      return absent(
          "The trace has no samples of quantized tensors: --fp8, --fp4 or --precision-recipe quantizes some, and "
          "--precision-stats-interval says how often they are sampled.");
    return paragraph(strprintf("What quantization did in step %d, the noisiest tensors first.",
                               facts.precision.steps.back())) +
           table_markup(precision_rows(tensors)) + left_out(tensors.size(), kListedTensors, "tensors");
  });
}

}  // namespace ranklab::viz
