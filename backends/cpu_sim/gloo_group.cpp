#include "backends/cpu_sim/gloo_group.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <thread>

#include "backends/cpu_sim/inproc_transport.h"

namespace ranklab::cpu_sim {

const std::shared_ptr<gloo::Context>& GlooGroup::context(int seat) {
  std::call_once(connected_, [this] {
    if (tcp_device_) {
      connect_tcp();
    } else {
      contexts_ = make_inproc_contexts(size_, timeout_);
    }
  });
  return contexts_[static_cast<size_t>(seat)];
}

void GlooGroup::connect_tcp() {
  gloo::rendezvous::HashStore store;
  std::vector<std::shared_ptr<gloo::Context>> contexts(static_cast<size_t>(size_));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size_));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size_; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<size_t>(rank);
      try {
        auto context = std::make_shared<gloo::rendezvous::Context>(rank, size_);
        context->setTimeout(timeout_);
        auto device = tcp_device_;
        context->connectFullMesh(store, device);
        contexts[index] = std::move(context);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  contexts_ = std::move(contexts);
}

void GlooGroup::close() {
  for (const auto& context : contexts_) context->closeConnections();
}

std::shared_ptr<gloo::transport::Device> make_loopback_tcp_device() {
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  return gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace ranklab::cpu_sim
