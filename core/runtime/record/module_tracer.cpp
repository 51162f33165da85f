#include "core/runtime/record/module_tracer.h"

#include <algorithm>

#include "core/comm/event_now.h"

namespace ranklab {
namespace {

// "layers.3" encloses "layers.3.attention"; a path encloses itself.
bool encloses(const std::string& outer, const std::string& inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

}  // namespace

std::string module_event_name(const std::string& path, ModulePass pass) {
  if (pass == ModulePass::kForward) return path;
  return path + (pass == ModulePass::kBackward ? " backward" : " recompute");
}

void ModuleTracer::resume(Stack& action) {
  action_ = &action;
  for (Open& open : action) open.event = begun(open);
}

void ModuleTracer::pause() {
  if (action_ == nullptr) return;
  for (auto open = action_->rbegin(); open != action_->rend(); ++open) record(*open);
  action_ = nullptr;
}

void ModuleTracer::before_forward(const std::string& path, ModulePass pass, const at::Tensor& /*input*/) {
  begin(path, pass);
}
void ModuleTracer::after_forward(const std::string& path, ModulePass pass, const at::Tensor& /*output*/) {
  end(path, pass);
}
void ModuleTracer::before_backward(const std::string& path, const at::Tensor& /*grad_output*/) {
  begin(path, ModulePass::kBackward);
}
void ModuleTracer::after_backward(const std::string& path, const at::Tensor& /*grad_input*/) {
  end(path, ModulePass::kBackward);
}

void ModuleTracer::kernel(const KernelRun& kernel) {
  Event event = event_now(rank_, EventKind::kKernel, kernel.name);
  event.virtual_begin_ns = kernel.begin_ns;
  event.dtype = kernel.dtype;
  event.tag = static_cast<int32_t>(kernel.bound);
  event.logical_bytes = static_cast<int64_t>(kernel.bytes);
  event.value = kernel.flops;
  rank_.tracer().record(event);
}

void ModuleTracer::begin(const std::string& path, ModulePass pass) {
  if (!traces()) return;
  Stack& open = *action_;
  const auto known =
      std::find_if(open.begin(), open.end(), [&](const Open& one) { return one.pass == pass && *one.path == path; });
  // In backward, the gradient arrives several times for a module that has several outputs.
  if (known != open.end() && pass == ModulePass::kBackward) return;
  // Modules whose backward autograd has not yet reported as ended.
  const auto over = [&](const Open& one) {
    const bool related = encloses(*one.path, path) || (pass == ModulePass::kBackward && encloses(path, *one.path));
    return one.pass == ModulePass::kBackward && !related;
  };
  while (!open.empty() && over(open.back())) {
    record(open.back());
    open.pop_back();
  }
  // If a parent's output is its last child's output, the parent's backward begins together with the child's, but the
  // hooks report it afterwards.
  size_t above = 0;
  while (pass == ModulePass::kBackward && above < open.size()) {
    const Open& child = open[open.size() - 1 - above];
    if (child.pass != pass || !encloses(path, *child.path)) break;
    ++above;
  }
  Open one{.path = &path, .pass = pass, .event = {}};
  one.event = begun(one);
  if (above > 0) {
    const Event& child = open[open.size() - above].event;
    one.event.virtual_begin_ns = child.virtual_begin_ns;
    one.event.wall_begin_ns = child.wall_begin_ns;
    one.event.value = child.value;
  }
  open.insert(open.end() - static_cast<std::ptrdiff_t>(above), one);
}

void ModuleTracer::end(const std::string& path, ModulePass pass) {
  if (action_ == nullptr) return;
  Stack& open = *action_;
  const auto it =
      std::find_if(open.rbegin(), open.rend(), [&](const Open& one) { return one.pass == pass && *one.path == path; });
  if (it == open.rend()) return;
  const auto first = static_cast<size_t>(open.rend() - it) - 1;
  while (open.size() > first) {
    record(open.back());
    open.pop_back();
  }
}

Event ModuleTracer::begun(const Open& open) {
  Event event = event_now(rank_, EventKind::kModule, module_event_name(*open.path, open.pass));
  event.value = rank_.op_observer() != nullptr ? rank_.op_observer()->flops() : 0;
  return event;
}

void ModuleTracer::record(const Open& open) {
  Event event = open.event;
  event.virtual_end_ns = rank_.clock().now_ns();
  event.wall_end_ns = wall_now_ns();
  event.value = rank_.op_observer() != nullptr ? rank_.op_observer()->flops() - event.value : 0;
  rank_.tracer().record(event);
}

bool ModuleTracer::traces() const { return action_ != nullptr && rank_.tracer().wants(EventKind::kModule); }

}  // namespace ranklab
