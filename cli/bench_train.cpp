#include "cli/bench_train.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/bench_process.h"
#include "cli/median.h"
#include "core/base/error.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using nlohmann::json;

struct Mode {
  std::string name;
  std::string ours;  // flags of `ranklab bench step`
  std::string peer;  // flags of peer.py
  int peer_processes;
};

const std::vector<Mode>& all_modes() {
  static const std::vector<Mode> kModes = {
      {"single", "--world-size 1 --tp 1 --threads-per-rank 2", "--mode single --threads 2 --heads 8", 1},
      {"dp8", "--world-size 8 --tp 1", "--mode ddp --heads 8", 8},
      {"tp8", "--world-size 8 --tp 8 --no-sp", "--mode tp --heads 8", 8},
      {"tp8-sp", "--world-size 8 --tp 8 --sp", "--mode tpsp --heads 8", 8},
  };
  return kModes;
}

const Mode& find_mode(const std::string& name) {
  std::vector<std::string> names;
  for (const Mode& mode : all_modes()) {
    if (mode.name == name) return mode;
    names.push_back(mode.name);
  }
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "bench train", .what = "unknown mode", .got = quote(name), .want = join(names, ", ")});
}

struct TrainRow {
  std::string side, mode;
  std::vector<double> step_ms = {}, tokens_per_s = {}, startup_s = {}, pss_mb = {};
  void add(const json& j) {
    step_ms.push_back(j.at("step_ms_median"));
    tokens_per_s.push_back(j.at("tokens_per_s"));
    startup_s.push_back(j.at("startup_s"));
    pss_mb.push_back(j.at("pss_mb_sum"));
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

// "ranklab mkl" and "torch mkl" multiply with the same library.
std::string library_of(const TrainRow& row) { return row.side.substr(row.side.rfind(' ') + 1); }

const TrainRow* find_row(const std::vector<TrainRow>& rows, const std::string& mode, const std::string& side) {
  for (const TrainRow& row : rows) {
    if (row.mode == mode && row.side == side) return &row;
  }
  return nullptr;
}

void print_row(const TrainRow& row, const std::vector<TrainRow>& rows) {
  std::printf("%-8s %-16s %9.1f %10.0f %9.2f %9.0f", row.mode.c_str(), row.side.c_str(), median(row.step_ms),
              median(row.tokens_per_s), median(row.startup_s), median(row.pss_mb));
  const TrainRow* ours = find_row(rows, row.mode, "ranklab");
  const TrainRow* same = find_row(rows, row.mode, "ranklab " + library_of(row));
  if (row.side.starts_with("torch") && ours != nullptr && same != nullptr) {
    const double peer = median(row.tokens_per_s);
    std::printf("   %7.2fx %8.2fx %9.1fx %8.1fx", median(ours->tokens_per_s) / peer, median(same->tokens_per_s) / peer,
                median(row.startup_s) / median(ours->startup_s), median(row.pss_mb) / median(ours->pss_mb));
  }
  std::printf("\n");
}

void print_table(const BenchTrainOptions& options, const std::vector<TrainRow>& rows) {
  std::printf(
      "%s model, medians of %d repetitions of %d steps. On torch's rows: how many times faster, sooner and smaller "
      "ranklab is;\n"
      "speed: with ranklab's own choice of GEMM library, same lib: with torch's.\n",
      options.preset.c_str(), options.repetitions, options.steps);
  std::printf("%-8s %-16s %9s %10s %9s %9s   %8s %9s %10s %9s\n", "mode", "side", "ms/step", "tokens/s", "start s",
              "PSS MB", "speed", "same lib", "launch", "memory");
  for (const TrainRow& row : rows) print_row(row, rows);
  const TrainRow* single = find_row(rows, "single", "torch mkl");
  const TrainRow* dp = find_row(rows, "dp8", "ranklab");
  if (single != nullptr && dp != nullptr) {
    std::printf("ranklab dp8 against torch's single process with 2 threads: %.2fx\n",
                median(dp->tokens_per_s) / median(single->tokens_per_s));
  }
}

}  // namespace

int run_bench_train(const BenchTrainOptions& options) {
  std::vector<TrainRow> rows;
  std::vector<std::pair<TrainRow*, std::string>> plan;
  rows.reserve(options.modes.size() * 5);
  for (const std::string& name : options.modes) {
    const Mode& mode = find_mode(name);
    const auto add = [&](const std::string& side, const std::string& command) {
      rows.push_back({.side = side, .mode = name});
      plan.emplace_back(&rows.back(), command);
    };
    add("ranklab", ours_command(options, mode, "auto"));
    add("ranklab mkl", ours_command(options, mode, "mkl"));
    add("ranklab onednn", ours_command(options, mode, "onednn"));
    if (options.peer_python.empty()) continue;
    add("torch mkl", peer_command(options, mode, "highest"));
    add("torch onednn", peer_command(options, mode, "medium"));
  }
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (auto& [row, command] : plan) {
      std::fprintf(stderr, "repetition %d of %d: %s %s\n", repetition + 1, options.repetitions, row->mode.c_str(),
                   row->side.c_str());
      row->add(run_bench_process("bench train", command));
    }
  }
  print_table(options, rows);
  return 0;
}

}  // namespace ranklab
