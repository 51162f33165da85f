// `ranklab topo`: the placement of ranks, which groups span nodes, and what a training step sends between them.
// Computation only: no ranks are started.
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/topo/topology_text.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

struct TopoOptions {
  TopologyOptions topology;
  bool all = false, json = false, sequence_parallel = false;
};

void add_mesh_options(CommandLine& app, TopologyOptions& o) {
  app.add_option("--world-size", o.dims.world, "number of ranks (0: dp x cp x tp x pp)");
  app.add_option("--tp,--tensor-model-parallel-size", o.dims.tp, "tensor parallel size");
  app.add_option("--cp,--context-parallel-size", o.dims.cp, "context parallel size");
  app.add_option("--pp,--pipeline-model-parallel-size", o.dims.pp, "pipeline stages");
  app.add_option("--dp", o.dims.dp, "data parallel size (0: derived from the world)");
  app.add_option("--ep,--expert-model-parallel-size", o.dims.ep, "expert parallel size");
  app.add_option("--etp,--expert-tensor-parallel-size", o.dims.etp, "tensor parallel size of expert layers");
  app.add_option("--order", o.dims.order, "rank order, fastest axis first")->capture_default_str();
  app.add_option("--gpus-per-node", o.gpus_per_node, "ranks that share a node")->capture_default_str();
}

void add_model_options(CommandLine& app, TopologyOptions& o) {
  app.add_option("--preset", o.preset, "model whose traffic per step is counted (none: only the mesh)")
      ->capture_default_str();
  app.add_option("--seq-length", o.seq_length, "tokens per sequence (0: the preset's)");
  app.add_option("--mbs,--micro-batch-size", o.micro_batch_size, "sequences per microbatch")->capture_default_str();
  app.add_option("--gbs,--global-batch-size", o.global_batch_size, "sequences per step (0: mbs x dp x pp)");
  app.add_option("--params-dtype", o.params_dtype, "element type: fp32, fp64, bf16, fp16")->capture_default_str();
  app.add_option("--num-experts", o.num_experts,
                 "number of routed experts (0: the preset's; for a dense preset, one per ep rank)");
  app.add_option("--moe-router-topk", o.router_topk, "experts per token (0: the preset's)");
  app.add_option("--ddp-bucket-bytes", o.bucket_bytes, "gradient bucket size in bytes (0: as in train)")
      ->capture_default_str();
}

// Whether the text names an option that the command does not have.
bool names_another_option(const CommandLine& app, const std::string& text) {
  std::set<std::string> known;
  for (const CommandOption* option : app.options())
    for (const std::string& name : option->names()) known.insert(name);
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    if (!known.contains(text.substr(at, end == std::string::npos ? end : end - at))) return true;
  }
  return false;
}

// The model's own rules may recommend training settings, most of which are not options of this command.
Topology topology_of(const CommandLine& app, const TopologyOptions& options) {
  try {
    return make_topology(options);
  } catch (const Error& error) {
    ErrorText text = error.text();
    if (names_another_option(app, text.fix)) text.fix = kMeshAlone;
    throw Error(error.kind(), text);
  }
}

}  // namespace

CommandAction setup_topo(CommandLine& app) {
  auto options = std::make_shared<TopoOptions>();
  add_mesh_options(app, options->topology);
  add_model_options(app, options->topology);
  CommandOption* sp = app.add_flag("--sp,--sequence-parallel,!--no-sp,!--no-sequence-parallel",
                                   options->sequence_parallel, "shard activations over tp (default: on when tp > 1)");
  app.add_flag("--all", options->all, "print all ranks and groups, without a limit");
  app.add_flag("--json", options->json, "print one JSON object");
  app.footer(
      "Examples:\n  ranklab topo --tp 2 --pp 2 --dp 2 --ep 4 --gpus-per-node 4\n"
      "  ranklab topo --world-size 1024 --tp 8 --pp 4 --preset llama_8b --gbs 1024");
  return [&app, options, sp] {
    if (sp->count() > 0) options->topology.sequence_parallel = options->sequence_parallel;
    const Topology topology = topology_of(app, options->topology);
    const std::string text =
        options->json ? topology_json(topology) : topology_text(topology, style_for(stdout), options->all);
    std::fputs(text.c_str(), stdout);
    return 0;
  };
}

}  // namespace ranklab
