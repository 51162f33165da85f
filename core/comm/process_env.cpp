#include "core/comm/process_env.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kMost = 1 << 20;

// The variable names of one launcher; an empty name means that it has no such variable. Later names in a list are used
// when the earlier ones are unset.
struct Names {
  Launcher launcher;
  const char* title;
  const char* rank;
  std::array<const char*, 2> size;
  const char* local_rank;
  const char* local_size;
  const char* node_rank;
  std::array<const char*, 3> run_id;
};

// A job step of SLURM may be smaller than the job, hence the STEP name first.
constexpr std::array<Names, 4> kLaunchers = {{
    {Launcher::kTorchrun,
     "torchrun, ranklab launch",
     "RANK",
     {"WORLD_SIZE", ""},
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     "GROUP_RANK",
     {"TORCHELASTIC_RUN_ID", "", ""}},
    {Launcher::kOpenMpi,
     "Open MPI (mpirun)",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE", ""},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_NODE_RANK",
     {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"}},
    {Launcher::kSlurm,
     "SLURM (srun)",
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     "",
     "SLURM_NODEID",
     {"SLURM_JOB_ID", "SLURM_JOBID", ""}},
    {Launcher::kPmi,
     "PMI (MPICH, Intel MPI)",
     "PMI_RANK",
     {"PMI_SIZE", ""},
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     "",
     {"PMI_JOBID", "HYDI_CONTROL_FD", ""}},
}};

class Reader {
 public:
  explicit Reader(const GetEnv& get_env) : get_env_(get_env) {}

  std::string text(std::string_view name) const {
    if (name.empty()) return "";
    const char* value = get_env_(std::string(name).c_str());
    return value != nullptr ? value : "";
  }
  bool has(std::string_view name) const { return !text(name).empty(); }
  template <size_t N>
  std::string first_of(const std::array<const char*, N>& names) const {
    for (const char* name : names)
      if (has(name)) return name;
    return names[0];
  }
  std::string required(const std::string& name, const std::string& because,
                       const std::string& want = "both, or neither") const {
    const std::string value = text(name);
    if (value.empty()) fail("environment variable " + name + " is missing", "only " + because, want);
    return value;
  }
  int number(const std::string& name, const std::string& value, int lowest, int highest) const {
    int out = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size() || out < lowest || out > highest) {
      fail("bad environment variable " + name, name + "=" + quote(value),
           "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return out;
  }
  int number(const std::string& name, int otherwise) const {
    return has(name) ? number(name, text(name), 0, kMost) : otherwise;
  }

  [[noreturn]] static void fail(const std::string& what, const std::string& got, const std::string& want) {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "process environment",
                 .what = what,
                 .got = got,
                 .want = want,
                 .fix = "start with ranklab launch, torchrun --no-python, srun or mpirun, or unset the variables "
                        "(env -u RANK -u WORLD_SIZE ...) to run all ranks in one process"});
  }

 private:
  const GetEnv& get_env_;
};

// Rank and size of one launcher; fails when only one of the two is set.
struct Place {
  int rank = 0;
  int size = 1;
};

Place read_place(const Reader& reader, const Names& names) {
  const std::string size_name = reader.first_of(names.size);
  const std::string size = reader.required(size_name, std::string(names.rank) + "=" + reader.text(names.rank));
  Place place;
  place.size = reader.number(size_name, size, 1, kMost);
  place.rank = reader.number(names.rank, reader.required(names.rank, size_name + "=" + size), 0, place.size - 1);
  return place;
}

// torchrun's agent is itself a task of SLURM or MPI, whose values then count agents; and inside mpirun, SLURM's values
// are those of the batch script.
bool may_differ(const Reader& reader, Launcher inner, Launcher outer) {
  if (inner == Launcher::kTorchrun) return reader.has("TORCHELASTIC_RUN_ID");
  return inner == Launcher::kOpenMpi && outer == Launcher::kSlurm;
}

void refuse_contradiction(const Reader& reader, const Names& inner, const Place& place) {
  bool after = false;
  for (const Names& outer : kLaunchers) {
    if (after && reader.has(outer.rank) && !may_differ(reader, inner.launcher, outer.launcher)) {
      const Place other = read_place(reader, outer);
      if (other.rank != place.rank || other.size != place.size) {
        const auto show = [&](const Names& n) {
          const std::string size = reader.first_of(n.size);
          return std::string(n.rank) + "=" + reader.text(n.rank) + " " + size + "=" + reader.text(size);
        };
        Reader::fail("two launchers contradict each other", show(inner) + " but " + show(outer),
                     "one launcher, or the same rank and size from both");
      }
    }
    after = after || outer.launcher == inner.launcher;
  }
}

const Names* find_launcher(const Reader& reader) {
  for (const Names& names : kLaunchers)
    if (reader.has(names.rank)) return &names;
  return nullptr;
}

void read_master(const Reader& reader, ProcessEnv& env) {
  const bool needed = env.launcher == Launcher::kTorchrun && env.world_size > 1;
  if (needed) {
    const std::string set = "RANK=" + std::to_string(env.rank) + " WORLD_SIZE=" + std::to_string(env.world_size);
    for (const char* name : {"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
      reader.required(name, set, "LOCAL_RANK, MASTER_ADDR and MASTER_PORT, too, or none of them");
  }
  env.master_addr = reader.text("MASTER_ADDR");
  if (env.master_addr.empty()) return;
  env.master_port =
      reader.number("MASTER_PORT", reader.required("MASTER_PORT", "MASTER_ADDR=" + env.master_addr), 1, 65535);
}

// SLURM's "2(x3),1" or "4": tasks of each node. Only one node's worth matters here.
int slurm_local_size(const Reader& reader, int world_size) {
  const std::string nodes_name = reader.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_JOB_NUM_NODES";
  return reader.number(nodes_name, reader.number("SLURM_NNODES", 0)) == 1 ? world_size : 0;
}

}  // namespace

std::string_view name(Launcher launcher) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "torchrun", "Open MPI", "SLURM", "PMI"};
  return kNames[static_cast<size_t>(launcher)];
}

ProcessEnv read_process_env(const GetEnv& get_env) {
  const Reader reader(get_env);
  ProcessEnv env;
  const Names* names = find_launcher(reader);
  if (names == nullptr) {
    // SLURM_NTASKS alone means a shell inside an allocation; WORLD_SIZE alone is an incomplete environment.
    if (reader.has("WORLD_SIZE")) reader.required("RANK", "WORLD_SIZE=" + reader.text("WORLD_SIZE"));
    for (const size_t mpi : {size_t{1}, size_t{3}}) {
      const std::string size = kLaunchers[mpi].size[0];
      if (reader.has(size)) reader.required(kLaunchers[mpi].rank, size + "=" + reader.text(size));
    }
    env.local_rank = reader.number("LOCAL_RANK", 0);
    return env;
  }
  const Place place = read_place(reader, *names);
  refuse_contradiction(reader, *names, place);
  env.launcher = names->launcher;
  env.rank = place.rank;
  env.world_size = place.size;
  env.local_rank = reader.number(names->local_rank, 0);
  env.local_world_size = reader.number(names->local_size, 0);
  if (env.launcher == Launcher::kSlurm) env.local_world_size = slurm_local_size(reader, env.world_size);
  if (env.launcher != Launcher::kOpenMpi) env.node_rank = reader.number(names->node_rank, 0);
  env.run_id = reader.text(reader.first_of(names->run_id));
  env.node_list = reader.text(reader.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST");
  read_master(reader, env);
  if (env.launcher == Launcher::kTorchrun) {
    env.agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    env.restart = reader.text("TORCHELASTIC_RESTART_COUNT");
  }
  return env;
}

ProcessEnv read_process_env() {
  return read_process_env([](const char* name) -> const char* { return std::getenv(name); });
}

std::string first_host(const std::string& node_list) {
  const size_t open = node_list.find('[');
  const std::string head = node_list.substr(0, open);
  if (const size_t comma = head.find(','); comma != std::string::npos) return head.substr(0, comma);
  if (open == std::string::npos) return head;
  return head + node_list.substr(open + 1, node_list.find_first_of("-,]", open + 1) - open - 1);
}

void complete_master(ProcessEnv& env) {
  if (!env.master_addr.empty() || env.world_size == 1) return;
  if (env.one_host()) {
    env.master_addr = "127.0.0.1";
  } else if (env.launcher == Launcher::kSlurm && !env.node_list.empty()) {
    env.master_addr = first_host(env.node_list);
  } else {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "process environment",
                 .what = "it is not known where rank 0 is",
                 .got = std::string(name(env.launcher)) + ", " + std::to_string(env.world_size) + " ranks, " +
                        (env.local_world_size > 0 ? std::to_string(env.local_world_size) + " of them on this host"
                                                  : "hosts unknown"),
                 .want = "MASTER_ADDR and MASTER_PORT",
                 .fix = "pass them to every rank (mpirun -x MASTER_ADDR=<host of rank 0> -x MASTER_PORT=29500 ...)"});
  }
  // FNV-1a of the job's id, mapped below the ports that the kernel hands out (32768 and up).
  uint32_t hash = 2166136261U;
  for (const char c : env.run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  env.master_port = static_cast<int>(20000 + hash % 12000);
}

std::vector<ProcessEnvLine> describe_process_env(const GetEnv& get_env) {
  const Reader reader(get_env);
  const Names* used = find_launcher(reader);
  std::vector<ProcessEnvLine> lines;
  for (const Names& names : kLaunchers) {
    ProcessEnvLine line{names.title, {}, reader.has(names.rank), &names == used};
    std::vector<std::string> set, all;
    for (const std::string& variable :
         {std::string(names.rank), reader.first_of(names.size), std::string(names.local_rank)}) {
      all.push_back(variable);
      if (reader.has(variable)) set.push_back(variable + "=" + reader.text(variable));
    }
    if (names.launcher == Launcher::kTorchrun) {
      for (const char* variable : {"MASTER_ADDR", "MASTER_PORT"})
        if (reader.has(variable)) set.push_back(std::string(variable) + "=" + reader.text(variable));
    }
    line.variables = join(std::span<const std::string>(line.found || !set.empty() ? set : all), " ");
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ranklab
