#include "core/runtime/checkpoint/saver.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/run_folder.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

}  // namespace

std::string checkpoint_text(const CheckpointNote& note) {
  return strprintf("checkpoint step %lld: %s, stalled %.0f ms, written in %.0f ms", static_cast<long long>(note.step),
                   human_bytes(static_cast<double>(note.bytes)).c_str(), note.stalled_ms, note.written_ms);
}

CheckpointSaver::CheckpointSaver(SaverOptions options) : options_(std::move(options)), thread_([this] { run(); }) {}

// When the run has failed, the launcher ends this process, too; if the destructor took half a second, the unfinished
// folder would remain.
CheckpointSaver::~CheckpointSaver() {
  if (std::uncaught_exceptions() > 0) closing_limit_s_ = 0.15;
  closing_ = true;
  {
    const std::lock_guard lock(mutex_);  // no wake-up may come between the thread's check of closing_ and its wait
  }
  changed_.notify_all();
  thread_.join();
}

CheckpointWriter CheckpointSaver::writer(int64_t step) const {
  return {options_.run_folder, step, options_.token, *options_.calls};
}

void CheckpointSaver::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

void CheckpointSaver::wait_for_earlier(int64_t step) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || saves_.empty() || saves_.begin()->first >= step; });
  rethrow();
}

void CheckpointSaver::submit(int64_t step, RankSnapshot snapshot, std::optional<SaveHead> head) {
  const Lock lock(mutex_);
  rethrow();
  Save& save = saves_[step];
  if (save.begin_ns == 0) save.begin_ns = wall_now_ns();
  save.waiting.push_back(std::move(snapshot));
  if (head) save.head = std::move(head);
  changed_.notify_all();
}

void CheckpointSaver::wait_for(int64_t step) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !saves_.contains(step); });
  rethrow();
}

void CheckpointSaver::check() {
  const Lock lock(mutex_);
  rethrow();
}

std::vector<CheckpointNote> CheckpointSaver::take_notes() {
  const Lock lock(mutex_);
  return std::exchange(notes_, {});
}

void CheckpointSaver::run() {
  Lock lock(mutex_);
  while (true) {
    try {
      if (!error_ && work(lock)) continue;
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      fail(lock);
    }
    if (closing_) break;
    changed_.wait(lock);
  }
  // Some rank did not get this far: the run ends without this checkpoint.
  if (!options_.leads) return;
  for (const auto& [step, save] : saves_) writer(step).discard();
}

void CheckpointSaver::fail(Lock& lock) {
  error_ = std::current_exception();
  const std::map<int64_t, Save> given_up = std::exchange(saves_, {});
  changed_.notify_all();
  lock.unlock();
  for (const auto& [step, save] : given_up) {
    // The leader may have removed the folder before this process created it again.
    if (options_.leads)
      writer(step).discard();
    else
      writer(step).leave_no_empty_folder();
  }
  lock.lock();
}

bool CheckpointSaver::complete(const Save& save) const {
  return static_cast<int>(save.parts.size()) == options_.local_ranks && (!options_.leads || save.head);
}

bool CheckpointSaver::work(Lock& lock) {
  for (auto& [step, save] : saves_) {
    if (!save.waiting.empty()) {
      write_one(lock, step, save);
      return true;
    }
    if (complete(save)) {
      finish(lock, step, save);
      return true;
    }
  }
  return false;
}

void CheckpointSaver::write_one(Lock& lock, int64_t step, Save& save) {
  RankSnapshot snapshot = std::move(save.waiting.front());
  save.waiting.pop_front();
  lock.unlock();
  CheckpointWriter out = writer(step);
  out.begin();
  CheckpointManifest part = out.write_file(snapshot.rank, snapshot.pieces);
  if (!options_.leads) out.leave_part(snapshot.rank, part);
  const int rank = snapshot.rank;
  snapshot = {};  // frees its memory before anything waits
  lock.lock();
  save.parts[rank] = std::move(part);
}

void CheckpointSaver::finish(Lock& lock, int64_t step, Save& save) {
  std::optional<CheckpointNote> note;
  if (options_.leads) {
    lock.unlock();
    CheckpointWriter out = writer(step);
    collect_parts(out, save);
    publish(out, save);
    const int64_t now = wall_now_ns();
    int64_t bytes = 0;
    for (const CheckpointFile& file : save.head->manifest.files) bytes += static_cast<int64_t>(file.bytes);
    note = {.step = step,
            .bytes = bytes,
            .stalled_ms = milliseconds(save.head->ranks_wait ? now - save.head->begin_ns : save.head->stalled_ns),
            .written_ms = milliseconds(now - save.begin_ns)};
    lock.lock();
  }
  if (note) notes_.push_back(*note);
  saves_.erase(step);
  changed_.notify_all();
}

// When the run is ending, other processes are given less time.
void CheckpointSaver::collect_parts(const CheckpointWriter& writer, Save& save) const {
  constexpr auto kTick = std::chrono::milliseconds(5);
  const int64_t begin = wall_now_ns();
  for (int rank = 0; rank < options_.world_size; ++rank) {
    while (!save.parts.contains(rank)) {
      if (std::optional<CheckpointManifest> part = writer.find_part(rank)) {
        save.parts[rank] = std::move(*part);
        break;
      }
      const double waited_s = milliseconds(wall_now_ns() - begin) * 1e-3;
      const double limit_s = closing_ ? std::min(options_.part_limit_s, closing_limit_s_) : options_.part_limit_s;
      RANKLAB_CHECK(waited_s < limit_s, ErrorKind::kIo, .where = "checkpoint", .what = "a rank's file did not arrive",
                    .got = "nothing of rank " + std::to_string(rank) + " in " + quote(writer.temporary_folder()),
                    .want = strprintf("it within %.0f s", limit_s),
                    .fix = "every rank's --save must be one folder that all of them see");
      std::this_thread::sleep_for(kTick);
    }
  }
}

void CheckpointSaver::publish(CheckpointWriter& writer, Save& save) {
  CheckpointManifest& manifest = save.head->manifest;
  for (const auto& [rank, part] : save.parts) merge_part(manifest, part, writer.temporary_folder());
  writer.write_tokenizer(options_.tokenizer, manifest);
  writer.publish(manifest);
  if (options_.keep_last == 0) return;
  const std::vector<StepFolder> folders = step_folders(options_.run_folder);
  if (static_cast<int64_t>(folders.size()) <= options_.keep_last) return;
  Checkpoint(writer.published_folder()).verify();
  prune(options_.run_folder, manifest.step, options_.keep_last, *options_.calls);
}

}  // namespace ranklab
