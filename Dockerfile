# docker build -t cudp .
# With CUDA: docker build -t cudp --build-arg BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04 \
#                         --build-arg RUNTIME=nvidia/cuda:13.0.1-runtime-ubuntu24.04 .
# docker run --user "$(id -u)" -v "$PWD:/work" cudp train --preset glyphs-cnn --out run
ARG BASE=debian:12
ARG RUNTIME=debian:12-slim
FROM $BASE AS build
COPY . /src
RUN cd /src && scripts/package.sh
FROM $RUNTIME
COPY --from=build /src/dist/ /tmp/
RUN dpkg -i /tmp/cudp_*.deb && rm -r /tmp/cudp* && useradd --create-home cudp
USER cudp
WORKDIR /work
ENTRYPOINT ["cudp"]
