module better-compute/aged

go 1.26.0
