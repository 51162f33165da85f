// A mixture of experts by hand: 8 ranks, an expert each, layers 1 to 4, 6 steps of 1000 ns; 1024 tokens a rank, 2
// experts a token, hidden 256, bf16. The router becomes even from step to step; in layer 3 expert 5 is dead.
#pragma once
#include <array>
#include <vector>

#include "core/trace/routing_event.h"
#include "tests/viz/model/make_trace.h"

namespace ranklab::viz::samples {

constexpr int kSampleLayers = 4, kSampleSteps = 6;
constexpr double kRowBytes = 256 * 2;

// Assignments of one rank to each expert: 256 each, but for what the router of the layer still prefers.
inline std::vector<double> sample_tokens(int layer, int step) {
  constexpr std::array<int, 8> kLean = {3, 1, -1, -3, 2, -2, 0, 0};
  std::vector<double> tokens;
  for (const int lean : kLean) tokens.push_back(256 + lean * (layer * 16 / (step + 1)));
  if (layer == 3) {
    tokens[0] += tokens[5];
    tokens[5] = 0;
  }
  return tokens;
}

inline Event moment(Tracer& tracer, std::string_view name, int64_t at, int step, int layer, double value = 0) {
  Event event;
  event.kind = EventKind::kInstant;
  event.name = tracer.intern(name);
  event.step = step;
  event.tag = layer;
  event.value = value;
  event.virtual_begin_ns = event.virtual_end_ns = at;
  return event;
}

// Two all_to_alls of a layer: rank r sends what the router says, and gets back as much from each.
inline void record_exchange(Tracer& tracer, int rank, int layer, int step, int64_t begin) {
  const std::vector<double> tokens = sample_tokens(layer, step);
  std::vector<double> there, back;
  for (const double count : tokens) there.push_back(count * kRowBytes);
  back.assign(8, tokens[static_cast<size_t>(rank)] * kRowBytes);
  const auto number = static_cast<int64_t>(2 * (step * kSampleLayers + layer - 1));
  for (const bool dispatch : {true, false}) {
    const std::vector<double>& parts = dispatch ? there : back;
    double sum = 0;
    for (const double part : parts) sum += part;
    const int64_t at = begin + (dispatch ? 20 : 120);
    Event event = call(tracer, {.axis = Axis::kEp,
                                .verb = Verb::kAllToAll,
                                .sequence = number + (dispatch ? 0 : 1),
                                .posted = at,
                                .begin = at,
                                .end = at + 40,
                                .exposed = 40,
                                .logical = static_cast<int64_t>(sum),
                                .algorithm = static_cast<int64_t>(sum),
                                .wire = static_cast<int64_t>(sum - parts[static_cast<size_t>(rank)]),
                                .step = step,
                                .dtype = DType::kBFloat16});
    event.purpose = dispatch ? Purpose::kDispatch : Purpose::kCombine;
    tracer.record(event, parts);
  }
}

inline TraceFile expert_run() {
  std::vector<RankTrace> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    Tracer tracer(rank, "ep" + std::to_string(rank));
    tracer.set_group(Axis::kEp, {0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < kSampleSteps; ++step) {
      const int64_t begin = 1000 * step;
      tracer.record(phase(tracer, "step", begin, begin + 1000, step));
      for (int layer = 1; layer <= kSampleLayers; ++layer) {
        const int64_t at = begin + 200 * (layer - 1);
        const std::vector<double> tokens = sample_tokens(layer, step);
        tracer.record(compute(tracer, "F", at, at + 20, step, 0));
        tracer.record(moment(tracer, kRoutingEvent, at + 20, step, layer, layer == 2 ? 3 : 0), tokens);
        record_exchange(tracer, rank, layer, step, at);
        tracer.record(compute(tracer, "experts", at + 60, at + 120, step, 0));
      }
      for (int layer = 1; layer <= kSampleLayers; ++layer) {
        std::vector<double> all = sample_tokens(layer, step), bias;
        for (double& count : all) {
          bias.push_back((count > 256 ? -0.001 : count < 256 ? 0.001 : 0) * (step + 1));
          count *= 8;
        }
        tracer.record(moment(tracer, kExpertLoadEvent, begin + 990, step, layer, layer == 2 ? 24 : 0), all);
        tracer.record(moment(tracer, kExpertBiasEvent, begin + 991, step, layer), bias);
      }
      tracer.record(counter(tracer, "moe/aux_loss", begin + 992, 0.01 / (step + 1), step));
    }
    ranks.push_back(tracer.take());
  }
  TraceFile file = file_of(std::move(ranks));
  file.gpus_per_node = 4;
  return file;
}

}  // namespace ranklab::viz::samples
