#include "backends/cpu_sim/transport/data_link.h"

#include <gloo/common/error.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ranklab::cpu_sim {
namespace {

// Pieces handled per link and loop iteration, so that a busy peer does not starve the others.
constexpr int kPiecesPerTurn = 16;

bool later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// The reason why a socket call returned `count` (bytes, 0 or -1).
const char* reason(ssize_t count) {
  return count == 0 || errno == ECONNRESET || errno == EPIPE ? "it closed the connection" : std::strerror(errno);
}

}  // namespace

DataLink::DataLink(Socket socket, std::string peer_name, int epoll)
    : socket_(std::move(socket)), peer_name_(std::move(peer_name)), epoll_(epoll) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = this;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event);
}

void DataLink::check(uint64_t group) const {
  if (!failure_.empty()) throw gloo::IoException(failure_);
  if (closed_groups_.contains(group)) throw gloo::IoException("the group was closed by a failing member");
}

void DataLink::send(const LinkSlot& slot, LinkOperation op) {
  const std::lock_guard lock(mutex_);
  check(slot.group);
  const auto ready = readies_.find(slot);
  if (ready == readies_.end()) {
    sends_[slot].push_back(std::move(op));
    return;
  }
  const uint64_t wanted = ready->second.front();
  ready->second.pop_front();
  if (ready->second.empty()) readies_.erase(ready);
  start(slot, std::move(op), wanted);
}

void DataLink::recv(const LinkSlot& slot, LinkOperation op) {
  const std::lock_guard lock(mutex_);
  check(slot.group);
  const uint64_t length = op.at.length;
  recvs_[slot].push_back(std::move(op));
  queue(Kind::kReady, slot, length);
}

void DataLink::start(const LinkSlot& slot, LinkOperation op, uint64_t wanted) {
  const uint64_t length = op.at.length;
  if (length == wanted) return queue(Kind::kData, slot, length, std::move(op));
  op.at.buffer->complete(Direction::kSend, op.peer, sizes_differ(op.self, length, op.peer, wanted));
  queue(Kind::kUnequal, slot, length);
}

void DataLink::queue(Kind kind, const LinkSlot& slot, uint64_t length, std::optional<LinkOperation> op) {
  out_.push_back({{static_cast<uint64_t>(kind), slot.group, slot.slot, length}, std::move(op), 0});
  if (out_.size() == 1) flush();
}

void DataLink::flush() {
  while (!out_.empty()) {
    Outgoing& out = out_.front();
    const size_t payload = out.op ? out.op->at.length : 0;
    std::array<iovec, 2> parts{};
    const size_t of_header = std::min(out.written, sizeof out.header);
    const size_t of_payload = out.written - of_header;
    parts[0] = {reinterpret_cast<char*>(&out.header) + of_header, sizeof out.header - of_header};
    if (payload > 0) parts[1] = {out.op->at.bytes + of_payload, payload - of_payload};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = payload > 0 ? 2 : 1;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && later()) return watch_for_space(true);
    if (sent < 0) return end(reason(sent));
    out.written += static_cast<size_t>(sent);
    if (out.written < sizeof out.header + payload) continue;
    if (out.op) out.op->at.buffer->complete(Direction::kSend, out.op->peer);
    out_.pop_front();
  }
  watch_for_space(false);
}

void DataLink::watch_for_space(bool on) {
  if (on == watches_for_room_) return;
  watches_for_room_ = on;
  epoll_event event{};
  event.events = EPOLLIN | (on ? EPOLLOUT : 0U);
  event.data.ptr = this;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

void DataLink::write_some() {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) flush();
}

void DataLink::read_some() {
  const std::lock_guard lock(mutex_);
  for (int piece = 0; piece < kPiecesPerTurn && failure_.empty(); ++piece)
    if (in_.op ? !read_payload() : !read_header()) return;
}

// RETURNS: false when nothing more can be read now.
bool DataLink::read_header() {
  const size_t missing = sizeof in_.header - in_.header_read;
  const ssize_t got =
      ::recv(socket_.get(), reinterpret_cast<char*>(&in_.header) + in_.header_read, missing, MSG_DONTWAIT);
  if (got < 0 && later()) return false;
  if (got <= 0) {
    end(reason(got));
    return false;
  }
  in_.header_read += static_cast<size_t>(got);
  if (in_.header_read < sizeof in_.header) return true;
  in_.header_read = 0;
  take(in_.header);
  return true;
}

bool DataLink::read_payload() {
  LinkOperation& op = *in_.op;
  const ssize_t got = ::recv(socket_.get(), op.at.bytes + in_.read, op.at.length - in_.read, MSG_DONTWAIT);
  if (got < 0 && later()) return false;
  if (got <= 0) {
    end(reason(got));
    return false;
  }
  in_.read += static_cast<size_t>(got);
  if (in_.read < op.at.length) return true;
  op.at.buffer->complete(Direction::kRecv, op.peer);
  in_.op.reset();
  return true;
}

void DataLink::take(Header header) {
  const LinkSlot slot{header.group, header.slot};
  switch (static_cast<Kind>(header.kind)) {
    case Kind::kReady:
      if (std::optional<LinkOperation> op = pop(sends_, slot)) return start(slot, std::move(*op), header.length);
      readies_[slot].push_back(header.length);
      return;
    case Kind::kData:
    case Kind::kUnequal: {
      std::optional<LinkOperation> op = pop(recvs_, slot);
      const bool data = header.kind == static_cast<uint64_t>(Kind::kData);
      if (!op || data != (op->at.length == header.length)) return end("it sent a message that nobody expects");
      if (data && header.length > 0) {
        in_.op = std::move(op);
        in_.read = 0;
        return;
      }
      const std::string error = data ? "" : sizes_differ(op->peer, header.length, op->self, op->at.length);
      op->at.buffer->complete(Direction::kRecv, op->peer, error);
      return;
    }
    case Kind::kClose:
      return end_group(slot.group);
    case Kind::kCount:
      break;
  }
  end("it sent an invalid message");
}

std::optional<LinkOperation> DataLink::pop(Operations& operations, const LinkSlot& slot) {
  const auto found = operations.find(slot);
  if (found == operations.end()) return std::nullopt;
  std::optional<LinkOperation> op = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) operations.erase(found);
  return op;
}

void DataLink::forget(const BufferState* buffer) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const LinkOperation& op) { return op.at.buffer.get() == buffer; };
  for (Operations* side : {&sends_, &recvs_}) {
    for (auto it = side->begin(); it != side->end();) {
      std::erase_if(it->second, is_it);
      it = it->second.empty() ? side->erase(it) : std::next(it);
    }
  }
  std::erase_if(out_, [&](const Outgoing& out) { return out.written == 0 && out.op && is_it(*out.op); });
  const bool half_moved = (in_.op && is_it(*in_.op)) || (!out_.empty() && out_.front().op && is_it(*out_.front().op));
  if (half_moved) end("a message was given up half way");
}

void DataLink::close_group(uint64_t group) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty() || closed_groups_.contains(group)) return;
  queue(Kind::kClose, {group, 0}, 0);
  end_group(group);
}

void DataLink::end_group(uint64_t group) {
  closed_groups_.insert(group);
  for (Operations* side : {&sends_, &recvs_}) {
    for (auto it = side->lower_bound({group, 0}); it != side->end() && it->first.group == group;) {
      for (const LinkOperation& op : it->second) op.at.buffer->fail("the group was closed by a failing member");
      it = side->erase(it);
    }
  }
}

void DataLink::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  end(why);
}

void DataLink::end(const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = peer_name_ + ": " + why;
  for (const Operations* side : {&sends_, &recvs_})
    for (const auto& [slot, operations] : *side)
      for (const LinkOperation& op : operations) op.at.buffer->fail(failure_);
  for (const Outgoing& out : out_)
    if (out.op) out.op->at.buffer->fail(failure_);
  if (in_.op) in_.op->at.buffer->fail(failure_);
  sends_.clear();
  recvs_.clear();
  out_.clear();
  in_ = {};
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  socket_.close();  // the peer notices at once
}

}  // namespace ranklab::cpu_sim
