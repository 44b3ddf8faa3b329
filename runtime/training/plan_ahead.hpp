#pragma once
#include <future>
#include <memory>

#include "privacy/memo.hpp"
#include "runtime/base/timings.hpp"
#include "runtime/config/config.hpp"

namespace cudp {

/// Computes the noise multiplier of a training in another thread, while its data are being read.
/// The result goes into the cache `memo`, where the method finds it if it needs exactly the same
/// computation. Nothing is charged or reported, and errors are ignored. Does nothing unless the
/// data are a published set of known size and the method allows it (MethodEntry::plans_ahead). The
/// destructor of the last copy of the returned future waits for the thread.
std::shared_future<void> plan_ahead(const TrainConfig& config,
                                    const std::shared_ptr<privacy::AccountantMemo>& memo,
                                    std::shared_ptr<Timings> timings);

}  // namespace cudp
