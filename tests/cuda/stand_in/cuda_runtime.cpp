#include "tests/cuda/stand_in/cuda_runtime.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/cuda/stand_in/device_memory.h"

using ranklab::stand_in::Event;
using ranklab::stand_in::kDevices;
using ranklab::stand_in::Stream;
using ranklab::stand_in::stream_of;
using ranklab::stand_in::StreamWork;

// What the opaque handles of CUDA's headers point to.
struct CUstream_st {
  explicit CUstream_st(int device) : queue(device) {}
  Stream queue;
};
struct CUevent_st {
  Event event;
};

namespace {
std::atomic<int> living_graphs{0};
std::atomic<bool> next_launch_fails{false};

struct LivingGraph {
  LivingGraph() { ++living_graphs; }
  ~LivingGraph() { --living_graphs; }
  LivingGraph(const LivingGraph&) = delete;
  LivingGraph& operator=(const LivingGraph&) = delete;
};
}  // namespace

struct CUgraph_st {
  explicit CUgraph_st(std::vector<StreamWork> recorded) : work(std::move(recorded)) {}
  LivingGraph living;
  std::vector<StreamWork> work;
};
struct CUgraphExec_st {
  explicit CUgraphExec_st(const std::vector<StreamWork>& recorded)
      : work(std::make_shared<const std::vector<StreamWork>>(recorded)) {}
  LivingGraph living;
  std::shared_ptr<const std::vector<StreamWork>> work;  // replays that are queued outlive it
};

namespace {

constexpr size_t kMemory = size_t{16} << 30;
constexpr int kGreatestPriority = -5;
constexpr int kVersion = 13'000;

thread_local int t_device = 0;
thread_local cudaError_t t_last_error = cudaSuccess;

cudaError_t result(cudaError_t code) {
  if (code != cudaSuccess && code != cudaErrorNotReady) t_last_error = code;
  return code;
}

bool exists(int device) { return device >= 0 && device < kDevices; }

// Every stream of each device; the first is its default one.
class Streams {
 public:
  Streams() {
    for (int device = 0; device < kDevices; ++device) create(device);
  }
  cudaStream_t create(int device) {
    auto* stream = new CUstream_st(device);
    const std::lock_guard lock(mutex_);
    all_[static_cast<size_t>(device)].push_back(stream);
    return stream;
  }
  std::vector<cudaStream_t> of(int device) {
    const std::lock_guard lock(mutex_);
    return all_[static_cast<size_t>(device)];
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<cudaStream_t>, kDevices> all_;
};

Streams& streams() {
  static auto* const all = new Streams;
  return *all;
}

// What this thread captures (cudaStreamCaptureModeThreadLocal, the only mode that is known here): a call that is not
// allowed meanwhile is an error, and so is then the capture's end.
struct Capture {
  Stream* stream = nullptr;
  bool valid = true;
  unsigned long long id = 0;
  ranklab::stand_in::CapturePtr work = nullptr;
  std::vector<Stream*> joined = {};
};
thread_local Capture t_capture;

cudaError_t forbidden(cudaError_t code) {
  t_capture.valid = false;
  return result(code);
}

// Waits and queries of the thread that captures.
bool captures_here() { return t_capture.stream != nullptr; }

cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  stream_of(stream).add([to = ranklab::stand_in::on_host(to), from = ranklab::stand_in::on_host(from), bytes] {
    std::memmove(to, from, bytes);
  });
  return cudaSuccess;
}

}  // namespace

namespace ranklab::stand_in {

Stream& stream_of(cudaStream_t handle) {
  return handle == nullptr ? streams().of(t_device).front()->queue : handle->queue;
}

int live_graphs() { return living_graphs; }
void fail_next_graph_launch() { next_launch_fails = true; }

}  // namespace ranklab::stand_in

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = t_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  t_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "stand-in GPU");
  properties->major = 9;
  properties->totalGlobalMem = kMemory;
  properties->multiProcessorCount = 1;
  properties->warpSize = 32;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr /*which*/, int device) {
  *value = 0;
  return result(exists(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (captures_here()) return forbidden(cudaErrorStreamCaptureUnsupported);
  for (cudaStream_t stream : streams().of(t_device)) stream->queue.synchronize();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaSuccess ? "cudaSuccess" : code == cudaErrorNotReady ? "cudaErrorNotReady" : "cudaError";
}

const char* cudaGetErrorString(cudaError_t code) {
  if (code == cudaSuccess) return "no error";
  if (code == cudaErrorNotReady) return "device not ready";
  if (code == cudaErrorInvalidDevice) return "invalid device ordinal";
  if (code == cudaErrorMemoryAllocation) return "out of memory";
  if (code == cudaErrorLaunchFailure) return "unspecified launch failure";
  if (code == cudaErrorStreamCaptureUnsupported) return "operation not permitted when stream is capturing";
  if (code == cudaErrorStreamCaptureInvalidated) return "operation failed due to a previous error during capture";
  if (code == cudaErrorStreamCaptureUnjoined) return "capturing stream has unjoined work";
  if (code == cudaErrorStreamCaptureIsolation) return "dependency created on uncaptured work in another stream";
  if (code == cudaErrorCapturedEvent) return "operation not permitted on an event last recorded in a capturing stream";
  return "an error of the stand-in runtime";
}

cudaError_t cudaGetLastError() { return std::exchange(t_last_error, cudaSuccess); }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  *pointer = ranklab::stand_in::allocate_device_memory(bytes, t_device);
  return result(*pointer != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}

// CUDA's waits until the device is idle, too.
cudaError_t cudaFree(void* pointer) {
  cudaDeviceSynchronize();
  ranklab::stand_in::free_device_memory(pointer, t_device);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int /*to_device*/, const void* from, int /*from_device*/, size_t bytes,
                                cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/) {
  copy(to, from, bytes, nullptr);
  return cudaStreamSynchronize(nullptr);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int /*flags*/, int /*priority*/) {
  *stream = streams().create(t_device);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (captures_here()) return forbidden(cudaErrorStreamCaptureUnsupported);
  return stream_of(stream).idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (captures_here()) return forbidden(cudaErrorStreamCaptureUnsupported);
  stream_of(stream).synchronize();
  return cudaSuccess;
}

// A stream that waits for an event of the capture becomes a part of it, until the capture's end, before which the
// capture's first stream must have waited for it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  Stream& waiting = stream_of(stream);
  const ranklab::stand_in::CapturePtr capture = event->event.capture();
  if (capture && capture == t_capture.work && waiting.begin_capture(capture)) t_capture.joined.push_back(&waiting);
  if (capture != waiting.capture()) return forbidden(cudaErrorStreamCaptureIsolation);
  event->event.put_in_front_of(waiting);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream_of(stream).captures() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* /*graph*/, const cudaGraphNode_t** /*dependencies*/,
                                     const cudaGraphEdgeData** /*edges*/, size_t* /*count*/) {
  if (id != nullptr) *id = t_capture.id;
  return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const auto work = std::make_shared<std::vector<StreamWork>>();
  if (stream == nullptr || mode != cudaStreamCaptureModeThreadLocal || captures_here() ||
      !stream_of(stream).begin_capture(work))
    return result(cudaErrorStreamCaptureUnsupported);
  static std::atomic<unsigned long long> captures{0};
  t_capture = {.stream = &stream_of(stream), .id = ++captures, .work = work};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (t_capture.stream != &stream_of(stream)) return result(cudaErrorIllegalState);
  const Capture ended = std::exchange(t_capture, {});
  std::vector<StreamWork> work = std::exchange(*ended.work, {});  // which events of the capture keep
  ended.stream->end_capture();
  bool joined = true;
  for (Stream* each : ended.joined) joined = each->end_capture() && joined;
  if (!ended.valid) return result(cudaErrorStreamCaptureInvalidated);
  if (!joined) return result(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st(std::move(work));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* launched, cudaGraph_t graph, unsigned long long /*flags*/) {
  *launched = new CUgraphExec_st(graph->work);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t launched, cudaStream_t stream) {
  if (next_launch_fails.exchange(false)) return result(cudaErrorLaunchFailure);
  stream_of(stream).add([work = launched->work] {
    for (const StreamWork& each : *work) each();
  });
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t launched) {
  delete launched;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* /*mode*/) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int /*flags*/) {
  event->event.record(stream_of(stream));
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (captures_here()) return forbidden(cudaErrorStreamCaptureUnsupported);
  if (event->event.captured()) return result(cudaErrorCapturedEvent);
  return event->event.reached() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (captures_here()) return forbidden(cudaErrorStreamCaptureUnsupported);
  if (event->event.captured()) return result(cudaErrorCapturedEvent);
  event->event.synchronize();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->event.reached() || !end->event.reached()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->event.time() - begin->event.time()).count();
  return cudaSuccess;
}
}
