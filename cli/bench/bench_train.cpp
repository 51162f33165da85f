#include "cli/bench/bench_train.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/bench/bench_process.h"
#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/numbers/median.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/nn/gemm.h"

namespace ranklab {
namespace {

using nlohmann::json;

struct Mode {
  std::string name;
  std::string ours;  // flags of `ranklab bench step`
  std::string peer;  // flags of peer.py
  int peer_processes;
};

const std::string kExperts = "--world-size 8 --tp 1 --ep 8 --num-experts 8 --moe-router-topk 2 --moe-router-norm-topk";
constexpr const char* kPeerExperts = "--mode moe --experts 8 --topk 2 --heads 8";

// Ranks in a pipeline or ZeRO group have no tensor-parallel peers here; ranklab's own defaults would add some.
const std::vector<Mode>& all_modes() {
  static const std::vector<Mode> kModes = {
      {"single", "--world-size 1 --tp 1 --threads-per-rank 2", "--mode single --threads 2 --heads 8", 1},
      {"dp8", "--world-size 8 --tp 1", "--mode ddp --heads 8", 8},
      {"zero1", "--world-size 8 --tp 1 --zero-stage 1", "--mode zero1 --heads 8", 8},
      {"zero2", "--world-size 8 --tp 1 --zero-stage 2", "--mode zero2 --heads 8", 8},
      {"zero3", "--world-size 8 --tp 1 --zero-stage 3", "--mode zero3 --heads 8", 8},
      {"tp8", "--world-size 8 --tp 8 --no-sp", "--mode tp --heads 8", 8},
      {"tp8-sp", "--world-size 8 --tp 8 --sp", "--mode tpsp --heads 8", 8},
      {"pp8", "--world-size 8 --tp 1 --pp 8 --pipeline-schedule 1f1b --num-microbatches 8",
       "--mode pp --microbatches 8 --heads 8", 8},
      {"pp4-vpp2", "--world-size 4 --tp 1 --pp 4 --vpp 2 --pipeline-schedule interleaved-1f1b --num-microbatches 8",
       "--mode pp --chunks 2 --schedule Interleaved1F1B --microbatches 8 --heads 8", 4},
      {"3d", "--world-size 8 --dp 2 --tp 2 --pp 2 --no-sp --pipeline-schedule 1f1b --num-microbatches 8",
       "--mode 3d --tp 2 --pp 2 --microbatches 8 --heads 8", 8},
      {"ep8", kExperts, kPeerExperts, 8},
      {"ep8-recompute", kExperts + " --recompute-granularity selective --recompute-modules moe", kPeerExperts, 8},
  };
  return kModes;
}

const Mode& find_mode(const std::string& name) {
  for (const Mode& mode : all_modes())
    if (mode.name == name) return mode;
  throw Error(ErrorKind::kInvalidArgument, {.where = "bench train",
                                            .what = "unknown mode",
                                            .got = quote(name),
                                            .want = join(row_names(all_modes()), ", "),
                                            .fix = "pass them to --modes, separated by commas"});
}

struct TrainRow {
  std::string side, mode;
  std::vector<double> step_ms = {}, tokens_per_s = {}, startup_s = {}, pss_mb = {};
  std::vector<double> limit_ms = {}, limit_share = {};  // for ranklab's rows only
  void add(const json& j) {
    step_ms.push_back(j.at("step_ms_median"));
    tokens_per_s.push_back(j.at("tokens_per_s"));
    startup_s.push_back(j.at("startup_s"));
    pss_mb.push_back(j.at("pss_mb_sum"));
    if (!j.contains("limit_ms")) return;
    limit_ms.push_back(j.at("limit_ms"));
    limit_share.push_back(j.at("limit_share"));
  }
};

std::string ours_command(const BenchTrainOptions& o, const Mode& mode, const std::string& gemm) {
  return strprintf("%s bench step --preset peer_%s %s --gemm %s --warmup %d --timed-steps %d",
                   shell_quote(o.program).c_str(), o.preset == "S" ? "s" : "m", mode.ours.c_str(), gemm.c_str(),
                   o.warmup, o.steps);
}

std::string peer_command(const BenchTrainOptions& o, const Mode& mode, const std::string& matmul) {
  const std::string python = shell_quote(o.peer_python);
  const int threads = mode.name == "single" ? 2 : 1;
  const std::string launch = mode.peer_processes == 1 ? python
                                                      : python + " -m torch.distributed.run --nproc-per-node " +
                                                            std::to_string(mode.peer_processes);
  return strprintf("OMP_NUM_THREADS=%d %s %s %s --preset %s --matmul %s --warmup %d --steps %d", threads,
                   launch.c_str(), shell_quote(o.peer_script).c_str(), mode.peer.c_str(), o.preset.c_str(),
                   matmul.c_str(), o.warmup, o.steps);
}

bool is_torch(const TrainRow& row) { return row.side.starts_with("torch"); }

// "ranklab mkl" and "torch mkl" use the same library for matrix products.
std::string library_of(const TrainRow& row) { return row.side.substr(row.side.rfind(' ') + 1); }

const TrainRow* find_row(const std::vector<TrainRow>& rows, const std::string& mode, const std::string& side) {
  for (const TrainRow& row : rows) {
    if (row.mode == mode && row.side == side) return &row;
  }
  return nullptr;
}

void print_head(const BenchTrainOptions& options) {
  std::printf(
      "%s model, medians of %d repetitions of %d steps. On torch's rows: how many times faster, sooner and smaller "
      "ranklab is;\n"
      "speed: with ranklab's own choice of GEMM library, same lib: with torch's. limit: the share of the time that "
      "went\n"
      "to nothing but the model's matrix products, at the library's full speed on all cores.\n",
      options.preset.c_str(), options.repetitions, options.steps);
  if (!onednn_available()) std::printf("No rows of oneDNN: %s.\n", why_no_onednn().c_str());
  std::printf("%-8s %-16s %9s %10s %9s %9s %6s   %8s %9s %10s %9s\n", "mode", "side", "ms/step", "tokens/s", "start s",
              "PSS MB", "limit", "speed", "same lib", "launch", "memory");
}

void print_row(const TrainRow& row, const std::vector<TrainRow>& rows) {
  std::printf("%-8s %-16s %9.1f %10.0f %9.2f %9.0f", row.mode.c_str(), row.side.c_str(), median(row.step_ms),
              median(row.tokens_per_s), median(row.startup_s), median(row.pss_mb));
  std::printf(" %6s", row.limit_share.empty() ? "" : strprintf("%.0f%%", 100 * median(row.limit_share)).c_str());
  const TrainRow* ours = find_row(rows, row.mode, "ranklab");
  const TrainRow* same = find_row(rows, row.mode, "ranklab " + library_of(row));
  if (is_torch(row) && ours != nullptr && same != nullptr) {
    const double peer = median(row.tokens_per_s);
    std::printf("   %7.2fx %8.2fx %9.1fx %8.1fx", median(ours->tokens_per_s) / peer, median(same->tokens_per_s) / peer,
                median(row.startup_s) / median(ours->startup_s), median(row.pss_mb) / median(ours->pss_mb));
  }
  std::printf("\n");
}

// The throughput of several ranks on this machine's cores, relative to that of one rank on all cores.
void print_against_one_rank(const std::vector<TrainRow>& rows) {
  const TrainRow* one = find_row(rows, "single", "ranklab");
  if (one == nullptr) return;
  std::vector<std::string> shares;
  for (const TrainRow& row : rows) {
    const bool same_model = find_mode(row.mode).peer != kPeerExperts;  // experts do other work
    if (row.side == "ranklab" && &row != one && same_model)
      shares.push_back(
          strprintf("%s %.0f%%", row.mode.c_str(), 100 * median(row.tokens_per_s) / median(one->tokens_per_s)));
  }
  if (!shares.empty()) std::printf("of one rank's speed with two threads: %s\n", join(shares, ", ").c_str());
}

void print_summary(const std::vector<TrainRow>& rows) {
  print_against_one_rank(rows);
  const TrainRow* single = find_row(rows, "single", "torch mkl");
  const TrainRow* dp = find_row(rows, "dp8", "ranklab");
  if (single == nullptr || dp == nullptr) return;
  std::printf("ranklab dp8 against torch's single process with 2 threads: %.2fx\n",
              median(dp->tokens_per_s) / median(single->tokens_per_s));
}

json json_of(const TrainRow& row) {
  json out = {{"mode", row.mode},
              {"side", row.side},
              {"step_ms", median(row.step_ms)},
              {"tokens_per_s", median(row.tokens_per_s)},
              {"startup_s", median(row.startup_s)},
              {"pss_mb", median(row.pss_mb)}};
  if (row.limit_ms.empty()) return out;
  out["limit_ms"] = median(row.limit_ms);
  out["limit_share"] = median(row.limit_share);
  return out;
}

struct Side {
  TrainRow row;
  std::string command;
};

std::vector<Side> sides_of(const BenchTrainOptions& options, const Mode& mode) {
  std::vector<Side> sides;
  const auto add = [&](const std::string& side, const std::string& command) {
    sides.push_back({{.side = side, .mode = mode.name}, command});
  };
  add("ranklab", ours_command(options, mode, "auto"));
  add("ranklab mkl", ours_command(options, mode, "mkl"));
  if (onednn_available()) add("ranklab onednn", ours_command(options, mode, "onednn"));
  if (options.peer_python.empty()) return sides;
  add("torch mkl", peer_command(options, mode, "highest"));
  if (onednn_available()) add("torch onednn", peer_command(options, mode, "medium"));
  return sides;
}

// Checked before the first row, so that no error appears in the middle of the table.
void check_peer(const BenchTrainOptions& options) {
  if (options.peer_python.empty()) return;
  const std::string command = shell_quote(options.peer_python) + " -c 'import torch, numpy' 2>/dev/null";
  RANKLAB_CHECK(std::system(command.c_str()) == 0, ErrorKind::kInvalidArgument, .where = "bench train",
                .what = "the peer needs a Python with torch and numpy", .got = "--peer " + quote(options.peer_python),
                .want = "one that can import both", .fix = "pip install torch numpy there");
}

// Processes of torchrun sometimes crash while they exit, which does not affect the measured speed.
json run_side(const Side& side) {
  try {
    return run_bench_process("bench train", side.command);
  } catch (const Error& error) {
    if (!is_torch(side.row)) throw;
    std::fprintf(stderr, "%s %s failed and is run once more: %s\n", side.row.mode.c_str(), side.row.side.c_str(),
                 error.what());
    return run_bench_process("bench train", side.command);
  }
}

}  // namespace

std::vector<std::string> bench_train_modes() { return row_names(all_modes()); }

// The two sides of a layout alternate, so that load from other programs affects both; a layout's rows are printed when
// all of them are done.
int run_bench_train(const BenchTrainOptions& options) {
  for (const std::string& name : options.modes) find_mode(name);
  check_peer(options);
  std::vector<TrainRow> rows;
  if (!options.json) print_head(options);
  for (const std::string& name : options.modes) {
    std::vector<Side> sides = sides_of(options, find_mode(name));
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      for (Side& side : sides) {
        side.row.add(run_side(side));
        std::fprintf(stderr, "repetition %d of %d: %s %s: %.1f ms/step\n", repetition + 1, options.repetitions,
                     name.c_str(), side.row.side.c_str(), side.row.step_ms.back());
      }
    }
    for (const Side& side : sides) rows.push_back(side.row);
    if (options.json) continue;
    for (const Side& side : sides) print_row(side.row, rows);
  }
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const TrainRow& row : rows) all.push_back(nlohmann::ordered_json(json_of(row)));
    std::fputs(json_result({{"rows", all}}).c_str(), stdout);
    return 0;
  }
  print_summary(rows);
  return 0;
}

}  // namespace ranklab
