#include "core/runtime/record/trace_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/runtime/record/run_log.h"
#include "core/trace/find_trace.h"

namespace ranklab {
namespace {

// Temporary files of killed runs that logged into the same folder.
void remove_leftovers(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(path).parent_path(), ignored))
    if (is_unfinished_trace(entry.path().string())) fs::remove(entry.path(), ignored);
}

}  // namespace

TraceWriterHook::TraceWriterHook(const std::string& directory, const RunPlan& plan, std::string title)
    : path_(trace_path(directory)),
      options_{.clock = plan.config.can(Capability::kVirtualTime) && plan.config.virtual_time ? TraceClock::kVirtual
                                                                                              : TraceClock::kWall,
               .world_size = plan.mesh.world_size(),
               .gpus_per_node = plan.config.gpus_per_node > 0 ? plan.config.gpus_per_node : plan.profile.gpus_per_node,
               .title = std::move(title)} {
  make_log_folder(directory);
}

TraceWriterHook::~TraceWriterHook() {
  keep();
  if (thread_.joinable()) thread_.join();
}

void TraceWriterHook::on_traces(const TracePiece& piece) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { write_all(); });
    done_ = false;  // set only now, so that keep() does not wait for a thread that could not be started
  }
  changed_.wait(lock, [this] { return next_ == nullptr || done_ || ending_; });
  if (failure_) std::rethrow_exception(failure_);
  if (ending_) return;
  next_ = piece;
  changed_.notify_all();
}

void TraceWriterHook::write_all() {
  std::exception_ptr failure;
  try {
    write_pieces();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  next_ = nullptr;
  done_ = true;
  changed_.notify_all();
}

void TraceWriterHook::write_pieces() {
  remove_leftovers(path_);
  ChromeTraceWriter writer(path_, options_);
  for (;;) {
    TracePiece piece;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return next_ != nullptr || ending_; });
      piece = std::exchange(next_, nullptr);
      changed_.notify_all();
    }
    if (piece == nullptr) break;
    writer.add(*piece);
    writer.flush();
  }
  writer.commit();
}

void TraceWriterHook::keep() noexcept {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return done_; });
}

void TraceWriterHook::on_train_end(const TrainResult&) {
  keep();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace ranklab
