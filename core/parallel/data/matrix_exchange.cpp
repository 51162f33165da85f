#include "core/parallel/data/matrix_exchange.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::vector<at::Tensor> cut(const at::Tensor& flat, const std::vector<int64_t>& lengths) {
  std::vector<at::Tensor> pieces;
  int64_t at = 0;
  for (const int64_t length : lengths) pieces.push_back(flat.narrow(0, std::exchange(at, at + length), length));
  return pieces;
}

}  // namespace

at::Tensor MatrixExchange::joined(const std::vector<at::Tensor>& flat, const Bucket& bucket) {
  if (!flat.empty()) return at::cat(flat);
  // The type in which updates of 16-bit parameters are also computed (param_groups.h).
  const at::Tensor& like = bucket.matrices[0]->data;
  const at::ScalarType type = like.itemsize() == 2 ? at::kFloat : like.scalar_type();
  return at::empty({0}, like.options().requires_grad(false).dtype(type));
}

MatrixExchange::MatrixExchange(const std::vector<GradBucket>& buckets, Communicator& group, Communicator& tp,
                               bool owners)
    : group_(group), tp_(tp) {
  std::vector<double> load(static_cast<size_t>(group.size()), 0);
  for (const GradBucket& bucket : buckets) {
    if (bucket.layout.matrix == MatrixBuckets::kMixed) continue;
    buckets_.push_back(plan(bucket, owners && group.size() > 1, load));
  }
}

MatrixExchange::Bucket MatrixExchange::plan(const GradBucket& bucket, bool owners, std::vector<double>& load) const {
  Bucket out;
  std::unordered_map<size_t, size_t> place_of;
  for (const BucketPlace& place : bucket.layout.places) {
    place_of[place.item] = out.matrices.size();
    out.matrices.push_back(bucket.parameters[place.item]);
  }
  out.shared = bucket.shards == 1;
  for (int member = 0; member < bucket.shards; ++member) {
    std::vector<Part>& parts = out.parts.emplace_back();
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, member)) {
      const size_t place = place_of.at(piece.item);
      parts.push_back({place, piece.begin, piece.end});
      out.cut = out.cut || piece.elements() < out.matrices[place]->data.numel();
    }
  }
  if (owners && (out.shared || out.cut)) choose_owners(out, load);
  if (!out.owners.empty() && !out.shared) route(out);
  return out;
}

// A matrix goes to the member with the least work so far, among those that hold at least half of the largest part.
void MatrixExchange::choose_owners(Bucket& bucket, std::vector<double>& load) const {
  std::vector<std::vector<int64_t>> held(bucket.matrices.size(), std::vector<int64_t>(load.size(), 0));
  for (size_t member = 0; member < bucket.parts.size(); ++member) {
    for (const Part& part : bucket.parts[member]) held[part.place][member] = part.elements();
  }
  for (size_t place = 0; place < bucket.matrices.size(); ++place) {
    if (bucket.shared) std::ranges::fill(held[place], 1);
    const int64_t most = *std::ranges::max_element(held[place]);
    size_t owner = load.size();
    for (size_t member = 0; member < load.size(); ++member) {
      if (2 * held[place][member] >= most && (owner == load.size() || load[member] < load[owner])) owner = member;
    }
    load[owner] += matrix_work(*bucket.matrices[place], tp_.size()).cost;
    bucket.owners.push_back(static_cast<int>(owner));
  }
}

void MatrixExchange::route(Bucket& bucket) const {
  const auto self = static_cast<size_t>(group_.rank());
  bucket.send_rows.resize(bucket.parts.size(), 0);
  bucket.recv_rows = bucket.send_rows;
  for (size_t member = 0; member < bucket.parts.size(); ++member) {
    for (const Part& part : bucket.parts[self]) {
      if (static_cast<size_t>(bucket.owners[part.place]) != member) continue;
      bucket.sent.push_back(part);
      bucket.send_rows[member] += part.elements();
    }
    for (const Part& part : bucket.parts[member]) {
      if (static_cast<size_t>(bucket.owners[part.place]) != self) continue;
      bucket.received.push_back(part);
      bucket.recv_rows[member] += part.elements();
    }
  }
}

std::vector<std::vector<MatrixWork>> MatrixExchange::work() const {
  std::vector<std::vector<MatrixWork>> result;
  for (const Bucket& bucket : buckets_) {
    std::vector<MatrixWork>& members = result.emplace_back(static_cast<size_t>(group_.size()));
    for (size_t place = 0; place < bucket.matrices.size(); ++place) {
      const MatrixWork work = matrix_work(*bucket.matrices[place], tp_.size());
      for (size_t member = 0; member < members.size(); ++member) {
        const bool has =
            bucket.shared || bucket.cut || std::ranges::count(bucket.parts[member], place, &Part::place) > 0;
        const bool maps = bucket.owners.empty() ? has : bucket.owners[place] == static_cast<int>(member);
        if (maps) members[member] += work;
      }
    }
  }
  return result;
}

MatrixExchange::UnderWay MatrixExchange::send(const Pieces& pieces) const {
  UnderWay going;
  for (const Bucket& bucket : buckets_) going.push_back(bucket.routed() ? send_to_owners(bucket, pieces) : nullptr);
  return going;
}

MatrixExchange::UnderWay MatrixExchange::map(UnderWay going, Pieces& pieces, const MatrixMap& map) const {
  UnderWay coming;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    WorkPtr& results = coming.emplace_back();
    if (bucket.routed()) {
      const at::Tensor received = std::exchange(going[i], nullptr)->wait();  // afterwards the sent tensor is freed
      results = map_owned(bucket, received, map);
    } else if (!bucket.owners.empty()) {
      results = map_shared(bucket, pieces, map);
    } else if (bucket.cut) {
      map_gathered(bucket, pieces, map);
    } else {
      map_held(bucket, pieces, map);
    }
  }
  return coming;
}

void MatrixExchange::take(UnderWay coming, Pieces& pieces) const {
  for (size_t i = 0; i < buckets_.size(); ++i)
    if (coming[i]) take_results(buckets_[i], std::exchange(coming[i], nullptr)->wait(), pieces);
}

std::vector<at::Tensor> MatrixExchange::mapped(const std::vector<const Parameter*>& parameters,
                                               std::vector<at::Tensor> locals, const MatrixMap& map) const {
  std::vector<std::vector<at::Tensor>> shards;
  for (const at::Tensor& local : locals) shards.push_back({local});
  std::vector<at::Tensor> sent;
  std::vector<int64_t> lengths;
  const auto is_shared = [&](size_t i) { return tp_.size() > 1 && !parameters[i]->partition.replicated(); };
  for (size_t i = 0; i < locals.size(); ++i) {
    if (!is_shared(i)) continue;
    sent.push_back(locals[i]);
    lengths.push_back(locals[i].numel());
  }
  if (!sent.empty()) {
    const at::Tensor mine = at::cat(sent);
    const at::Tensor all = tp_.all_gather(mine).view({tp_.size(), mine.numel()});
    for (size_t i = 0; i < locals.size(); ++i)
      if (is_shared(i)) shards[i].clear();
    for (int64_t rank = 0; rank < tp_.size(); ++rank) {
      const std::vector<at::Tensor> its = cut(all.select(0, rank), lengths);
      for (size_t i = 0, next = 0; i < locals.size(); ++i)
        if (is_shared(i)) shards[i].push_back(its[next++]);
    }
  }
  for (size_t i = 0; i < locals.size(); ++i) {
    for (at::Tensor& shard : shards[i]) shard = shard.view(parameters[i]->data.sizes());
    const size_t own = is_shared(i) ? static_cast<size_t>(tp_.rank()) : 0;
    locals[i] = map_parts(*parameters[i], shards[i], own, map).view({-1});
    shards[i].clear();
  }
  return locals;
}

// For matrices that are whole on the member that updates them.
void MatrixExchange::map_held(const Bucket& bucket, Pieces& pieces, const MatrixMap& map) const {
  const size_t member = bucket.shared ? 0 : static_cast<size_t>(group_.rank());
  std::vector<const Parameter*> held;
  std::vector<at::Tensor> locals;
  for (const Part& part : bucket.parts[member]) {
    held.push_back(bucket.matrices[part.place]);
    locals.push_back(pieces.at(held.back()));
  }
  const std::vector<at::Tensor> results = mapped(held, std::move(locals), map);
  for (size_t i = 0; i < held.size(); ++i) pieces.at(held[i]) = results[i];
}

void MatrixExchange::map_gathered(const Bucket& bucket, Pieces& pieces, const MatrixMap& map) const {
  std::vector<int64_t> rows;
  for (const std::vector<Part>& parts : bucket.parts) {
    int64_t& length = rows.emplace_back(0);
    for (const Part& part : parts) length += part.elements();
  }
  const std::vector<Part>& mine = bucket.parts[static_cast<size_t>(group_.rank())];
  std::vector<at::Tensor> sent;
  for (const Part& part : mine) sent.push_back(pieces.at(bucket.matrices[part.place]));
  const at::Tensor all = group_.all_gather(joined(sent, bucket), rows);
  std::vector<std::vector<at::Tensor>> found(bucket.matrices.size());
  int64_t at = 0;
  for (const std::vector<Part>& parts : bucket.parts) {
    for (const Part& part : parts)
      found[part.place].push_back(all.narrow(0, std::exchange(at, at + part.elements()), part.elements()));
  }
  std::vector<at::Tensor> locals;
  for (const std::vector<at::Tensor>& one : found) locals.push_back(one.size() == 1 ? one[0] : at::cat(one));
  const std::vector<at::Tensor> results = mapped(bucket.matrices, std::move(locals), map);
  for (const Part& part : mine)
    pieces.at(bucket.matrices[part.place]) = results[part.place].narrow(0, part.begin, part.elements()).clone();
}

WorkPtr MatrixExchange::send_to_owners(const Bucket& bucket, const Pieces& pieces) const {
  std::vector<at::Tensor> sent;
  for (const Part& part : bucket.sent) sent.push_back(pieces.at(bucket.matrices[part.place]));
  return group_.all_to_all_async(joined(sent, bucket), bucket.send_rows, bucket.recv_rows);
}

WorkPtr MatrixExchange::map_owned(const Bucket& bucket, const at::Tensor& received, const MatrixMap& map) const {
  std::map<size_t, std::vector<at::Tensor>> found;  // by place
  int64_t at = 0;
  for (const Part& part : bucket.received)
    found[part.place].push_back(received.narrow(0, std::exchange(at, at + part.elements()), part.elements()));
  std::vector<const Parameter*> owned;
  std::vector<at::Tensor> locals;
  for (const auto& [place, parts] : found) {
    owned.push_back(bucket.matrices[place]);
    locals.push_back(at::cat(parts));
  }
  const std::vector<at::Tensor> results = mapped(owned, std::move(locals), map);
  std::vector<at::Tensor> back;
  for (const Part& part : bucket.received) {
    const auto index = static_cast<size_t>(std::distance(found.begin(), found.find(part.place)));
    back.push_back(results[index].narrow(0, part.begin, part.elements()));
  }
  return group_.all_to_all_async(joined(back, bucket), bucket.recv_rows, bucket.send_rows);
}

// Every member has all matrices, and each maps its share of them.
WorkPtr MatrixExchange::map_shared(const Bucket& bucket, const Pieces& pieces, const MatrixMap& map) const {
  std::vector<int64_t> rows(static_cast<size_t>(group_.size()), 0);
  std::vector<const Parameter*> owned;
  std::vector<at::Tensor> locals;
  for (size_t place = 0; place < bucket.matrices.size(); ++place) {
    const int owner = bucket.owners[place];
    rows[static_cast<size_t>(owner)] += bucket.matrices[place]->data.numel();
    if (owner != group_.rank()) continue;
    owned.push_back(bucket.matrices[place]);
    locals.push_back(pieces.at(owned.back()));
  }
  return group_.all_gather_async(joined(mapped(owned, std::move(locals), map), bucket), rows);
}

// Takes this member's part of each matrix out of a bucket's results, which are in the order of the owners.
void MatrixExchange::take_results(const Bucket& bucket, const at::Tensor& results, Pieces& pieces) const {
  int64_t at = 0;
  const auto take = [&](const Parameter* matrix, int64_t elements) {
    pieces.at(matrix) = results.narrow(0, std::exchange(at, at + elements), elements);
  };
  for (const Part& part : bucket.sent) take(bucket.matrices[part.place], part.elements());
  if (!bucket.shared) return;
  for (int owner = 0; owner < group_.size(); ++owner) {
    for (size_t place = 0; place < bucket.matrices.size(); ++place)
      if (bucket.owners[place] == owner) take(bucket.matrices[place], bucket.matrices[place]->data.numel());
  }
}

}  // namespace ranklab
