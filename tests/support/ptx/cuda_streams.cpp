// Streams, events, graphs and errors of the CUDA runtime that is none.
#include <memory>
#include <mutex>
#include <set>

#include "tests/support/ptx/runtime.hpp"

using namespace cudp::ptx;

extern "C" {

// --- Streams and events ---

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return runtime().answer([&] {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = runtime().new_stream(flags == cudaStreamDefault);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return runtime().answer([&] {
    runtime().remove_stream(stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer_outside_capture([&] {
    Stream& s = runtime().stream(stream);
    runtime().history.host_waits_for(runtime().known_to(s));
    return cudaSuccess;
  });
}
/// All has been done by then: who asks knows as much as who waits.
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaDeviceSynchronize() {
  return answer_outside_capture([&] {
    runtime().history.host_waits_for_all();
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  return runtime().answer([&] {
    *e = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return runtime().answer([&] {
    delete event(e);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    *event(e) = {.known = runtime().known_to(s),
                 .time = Clocks::now(),
                 .is_recorded = true,
                 .capture = s.capture,
                 .frontier = s.frontier};
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    const Event& from = *event(e);
    if (from.capture == nullptr) {
      if (s.capture != nullptr) {
        s.capture->is_invalid = true;
        return Runtime::refuse(cudaErrorStreamCaptureIsolation,
                               "what is recorded waits for what is not");
      }
      if (from.is_recorded) s.known.join(from.known);
      return cudaSuccess;
    }
    if (s.capture == nullptr) {  // it is recorded, too, from here on
      s.capture = from.capture;
      s.frontier = from.frontier;
      return cudaSuccess;
    }
    if (s.capture != from.capture) return cudaErrorStreamCaptureMerge;
    std::set<u32> after(s.frontier.begin(), s.frontier.end());
    after.insert(from.frontier.begin(), from.frontier.end());
    s.frontier.assign(after.begin(), after.end());
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return answer_outside_capture([&] {
    if (event(e)->capture != nullptr) return cudaErrorCapturedEvent;
    runtime().history.host_waits_for(event(e)->known);
    return cudaSuccess;
  });
}
/// Milliseconds of this process: no device's.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return runtime().answer([&] {
    if (!event(begin)->is_recorded || !event(end)->is_recorded)
      return cudaErrorInvalidResourceHandle;
    *milliseconds =
        std::chrono::duration<float, std::milli>(event(end)->time - event(begin)->time).count();
    return cudaSuccess;
  });
}

// --- Graphs ---

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return runtime().answer([&] {
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    Stream& s = runtime().stream(stream);
    if (s.capture != nullptr) return cudaErrorIllegalState;
    s.capture = runtime().begin_capture();
    s.capture->origin = &s;
    s.capture->thread = std::this_thread::get_id();
    s.capture->is_relaxed = mode == cudaStreamCaptureModeRelaxed;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* to) {
  return runtime().answer([&] {
    *to = nullptr;
    Stream& s = runtime().stream(stream);
    if (s.capture == nullptr) return cudaErrorIllegalState;
    if (s.capture->origin != &s) return cudaErrorStreamCaptureUnmatched;
    const Frontier frontier = s.frontier;
    const auto capture = runtime().end_capture(s.capture);
    if (capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
    if (!runtime().is_joined(*capture, frontier)) return cudaErrorStreamCaptureUnjoined;
    *to = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  return runtime().answer([&] {
    *e = reinterpret_cast<cudaGraphExec_t>(runtime().instantiate(*graph(g)).release());
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  return runtime().answer([&] {
    delete graph(g);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  return runtime().answer([&] {
    runtime().remove(*executable(e));
    delete executable(e);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream) {
  return runtime().answer([&] {
    runtime().launch(*executable(e), runtime().stream(stream));
    return cudaSuccess;
  });
}

// --- Errors ---

cudaError_t cudaGetLastError() { return runtime().take_last(); }

const char* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorMissingConfiguration:
      return "cudaErrorMissingConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "an error that the interpreter has no name for";
  }
}
const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return cudaGetErrorName(e);
  }
}

}  // extern "C"
