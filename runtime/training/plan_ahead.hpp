#pragma once
#include <future>
#include <memory>

#include "privacy/memo.hpp"
#include "runtime/base/timings.hpp"
#include "runtime/config/config.hpp"

namespace cudp {

/// Computes the noise multiplier of a training in another thread while its data are being read, and
/// stores it in the cache `memo`. The training method finds it there if it needs exactly the same
/// computation. Charges and reports nothing, and ignores errors. Does nothing unless the data are a
/// published data set of known size, and the method's noise multiplier depends only on settings and
/// that size. Returns a future that is ready when the thread has ended; the destructor of its last
/// copy waits for the thread.
std::shared_future<void> plan_ahead(const TrainConfig& config,
                                    const std::shared_ptr<privacy::AccountantMemo>& memo,
                                    std::shared_ptr<Timings> timings);

}  // namespace cudp
