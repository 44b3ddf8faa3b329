#include "runtime/ranks/shared.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the FNV-1a hash of the text "a: b", which is made of the two arguments.
std::uint64_t hash_of(std::string_view a, std::string_view b) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::string_view part : {a, std::string_view(": "), b})
    for (const char c : part) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

void copy_text(const std::string& text, char* to, std::size_t capacity) {
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

}  // namespace

SharedBoard::SharedBoard(int ranks) : ranks_(ranks) {
  ensure(ranks >= 1 && ranks <= kMaxRanks, "ranks of one node");
  const std::size_t buffers = (static_cast<std::size_t>(ranks) + 1) * kChunk * sizeof(std::int64_t);
  const std::size_t page = (sizeof(Page) + 4095) / 4096 * 4096;
  bytes_ = page + buffers;
  void* const at =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw Error("no memory that ranks could share");
  page_ = new (at) Page{};
  numbers_ = reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(at) + page);
}

SharedBoard::~SharedBoard() { ::munmap(page_, bytes_); }

void SharedBoard::end(const std::string& why, Exit code) noexcept {
  std::uint32_t running = 0;
  if (!page_->ended.compare_exchange_strong(running, kEnding)) return;
  page_->code = static_cast<std::int32_t>(code);
  copy_text(why, page_->why, sizeof page_->why);
  page_->ended.store(kEnded, std::memory_order_release);
}

std::string SharedBoard::reason() const { return page_->why; }
Exit SharedBoard::code() const { return static_cast<Exit>(page_->code); }

void SharedBoard::check() const {
  if (ended()) throw RanksError(reason(), code());
}

SharedRanks::SharedRanks(SharedBoard& board, int rank, std::chrono::milliseconds timeout,
                         std::function<void()> watch)
    : board_(board), rank_(rank), timeout_(timeout), watch_(std::move(watch)) {}

/// Publishes this rank's call and compares it with the calls of the other ranks; throws if they
/// differ. The calling function of Ranks must synchronise the ranks at least once more after this,
/// so that all ranks have read the calls before the next ones are written.
void SharedRanks::begin(const char* function, const char* what, std::size_t bytes, bool same_size,
                        Patience patience) {
  SharedBoard::Call& mine = board_.slot(rank_).call;
  mine.function = hash_of(function, what);
  mine.bytes = bytes;
  copy_text(what, mine.what, sizeof mine.what);
  wait_for_all(what, patience);
  for (int r = 0; r < size(); ++r) {
    const SharedBoard::Call& other = board_.slot(r).call;
    if (other.function == mine.function && (!same_size || other.bytes == mine.bytes)) continue;
    board_.end(fmt::format("rank {} does {} of {} bytes, rank {} {} of {}", rank_, what, mine.bytes,
                           r, other.what, other.bytes),
               Exit::failure);
    board_.check();
  }
}

void SharedRanks::wait_for_all(const char* what, Patience patience) {
  ++arrivals_;
  board_.slot(rank_).arrivals.store(arrivals_, std::memory_order_release);
  const auto missing = [&] {
    for (int r = 0; r < size(); ++r)
      if (board_.slot(r).arrivals.load(std::memory_order_acquire) < arrivals_) return r;
    return -1;
  };
  // Short waits call yield() in a loop. Longer waits sleep, because other processes may need the
  // core.
  for (int i = 0; i < 64; ++i) {
    if (missing() < 0) return board_.check();
    std::this_thread::yield();
  }
  const Clock::time_point start = Clock::now();
  Clock::time_point watched = start;
  for (int polls = 0; missing() >= 0; ++polls) {
    board_.check();
    if (polls < 1024)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (polls % 64 != 0) continue;
    const Clock::time_point now = Clock::now();
    if (watch_ && now - watched > std::chrono::milliseconds(20)) {
      watched = now;
      watch_();
    }
    if (patience == Patience::unlimited || now - start < timeout_) continue;
    board_.end(fmt::format("rank {} did not come to \"{}\" within {} s (--rank-timeout)", missing(),
                           what, std::chrono::duration<double>(timeout_).count()),
               Exit::failure);
  }
  board_.check();
}

void SharedRanks::check() {
  if (watch_) watch_();
  board_.check();
}

void SharedRanks::sum(const char* what, std::span<std::int64_t> numbers) {
  begin("sum", what, numbers.size_bytes(), true);
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank_);
  for (std::size_t at = 0; at < numbers.size(); at += SharedBoard::kChunk) {
    const std::span part = numbers.subspan(at, std::min(SharedBoard::kChunk, numbers.size() - at));
    std::ranges::copy(part, board_.numbers(rank_));
    wait_for_all(what);
    // Each rank adds up its part of the chunk.
    const std::size_t end = part.size() * (me + 1) / ranks;
    for (std::size_t i = part.size() * me / ranks; i < end; ++i) {
      std::uint64_t total = 0;
      for (int r = 0; r < size(); ++r) total += static_cast<std::uint64_t>(board_.numbers(r)[i]);
      board_.common()[i] = static_cast<std::int64_t>(total);
    }
    wait_for_all(what);
    std::copy_n(board_.common(), part.size(), part.begin());
  }
  if (numbers.empty()) wait_for_all(what);
}

void SharedRanks::broadcast(const char* what, std::span<std::byte> bytes, Patience patience) {
  begin("broadcast", what, bytes.size(), true, patience);
  constexpr std::size_t kChunkBytes = SharedBoard::kChunk * sizeof(std::int64_t);
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const std::span part = bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at));
    if (rank_ == 0) std::memcpy(board_.common(), part.data(), part.size());
    wait_for_all(what);
    if (rank_ != 0) std::memcpy(part.data(), board_.common(), part.size());
    wait_for_all(what);
  }
  if (bytes.empty()) wait_for_all(what);
}

std::vector<std::string> SharedRanks::gather(const char* what, std::span<const std::byte> mine) {
  begin("gather", what, mine.size(), false);
  constexpr std::size_t kChunkBytes = SharedBoard::kChunk * sizeof(std::int64_t);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) sizes.push_back(board_.slot(r).call.bytes);
  std::vector<std::string> all(rank_ == 0 ? sizes.size() : 0);
  const std::uint64_t longest = std::ranges::max(sizes);
  const auto part = [&](std::uint64_t whole, std::uint64_t at) {
    return at < whole ? std::min<std::uint64_t>(kChunkBytes, whole - at) : 0;
  };
  for (std::uint64_t at = 0; at < longest; at += kChunkBytes) {
    if (const std::uint64_t n = part(mine.size(), at); n > 0)
      std::memcpy(board_.numbers(rank_), mine.data() + at, n);
    wait_for_all(what);
    for (int r = 0; rank_ == 0 && r < size(); ++r)
      all[static_cast<std::size_t>(r)].append(reinterpret_cast<const char*>(board_.numbers(r)),
                                              part(sizes[static_cast<std::size_t>(r)], at));
    wait_for_all(what);
  }
  if (longest == 0) wait_for_all(what);
  return all;
}

}  // namespace cudp
