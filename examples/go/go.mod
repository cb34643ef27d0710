module example.org/leasehold-example

go 1.21
