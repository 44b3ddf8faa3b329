#include "runtime/data/range.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/error.hpp"

namespace cudp {

void record_range(Dataset& part, Share share, std::size_t whole) {
  if (share.is_all()) return;
  part.first = share.of(whole).begin;
  part.whole = whole;
}

KeptRange::KeptRange(Dataset empty, Share share, std::uint64_t whole)
    : kept_(std::move(empty)),
      share_(share),
      whole_(whole),
      range_(share.is_all() ? ExampleRange{0, std::numeric_limits<std::size_t>::max()}
                            : share.of(whole)) {}

KeptRange::KeptRange(Dataset empty, Share share, std::uint64_t whole, RowFileWriter to)
    : KeptRange(std::move(empty), share, whole) {
  file_.emplace(std::move(to));
  keep_arrays_in(file_->folder(), kept_);
  const std::size_t rows = share_.of(whole_).size();
  kept_.labels.reserve(rows);
  if (kept_.has_targets()) kept_.targets.reserve(rows);
}

void KeptRange::unload() {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  if (!file_ || (kept_.size() - moved_) * feature_bytes(kept_) < kBytes) return;
  move_features(kept_, *file_);
  moved_ = kept_.size();
}

void KeptRange::take(const Dataset& block) {
  const std::size_t begin = std::clamp(range_.begin, taken_, taken_ + block.size());
  const std::size_t end = std::clamp(range_.end, begin, taken_ + block.size());
  append_examples(block, {begin - taken_, end - taken_}, kept_);
  taken_ += block.size();
  unload();
}

bool KeptRange::take(const Dataset& block, std::size_t example) {
  const std::size_t at = taken_++;
  const bool keeps = at >= range_.begin && at < range_.end;
  if (keeps) append_example(block, example, kept_);
  unload();
  return keeps;
}

Dataset KeptRange::finish(const std::string& file) {
  if (!share_.is_all() && taken_ != whole_)
    throw Error(file + ": its rows were changed while they were read");
  record_range(kept_, share_, whole_);
  if (file_) {
    move_features(kept_, *file_);
    kept_.rows = file_->finish();
  }
  return std::move(kept_);
}

}  // namespace cudp
