#pragma once
#include <future>
#include <memory>

#include "privacy/memo.hpp"
#include "runtime/base/timings.hpp"
#include "runtime/config/config.hpp"

namespace cudp {

/// Computes the noise multiplier of a training in another thread, while its data are being read. It
/// is a guess of what the method will compute: the results go into `memo`, where they are found if
/// the method asks for exactly these. Nothing is charged or reported, and a refusal is left to the
/// method. Does nothing unless the data are a published set of known size and the method allows it
/// (MethodEntry::plans_ahead). The last copy of the
/// result waits for the thread in its destructor.
std::shared_future<void> plan_ahead(const TrainConfig& config,
                                    const std::shared_ptr<privacy::AccountantMemo>& memo,
                                    std::shared_ptr<Timings> timings);

}  // namespace cudp
